// The paper's words explained where they stand, in the reader's language: the server knows it from the browser.
const EXPLAINED = "th, h2, h3, caption, label, legend, figcaption, p, dt, li, [role=tab]";
let words = [];

async function fetchWords() {
  const found = await (await fetch("/api/words")).json();
  // Longer words first: a consumer group is more than a consumer.
  words = Object.entries(found)
    .sort(([a], [b]) => b.length - a.length)
    .map(([word, says]) => [new RegExp(`\\b${word}(e?s)?\\b`, "gi"), says]);
}

// What the words of a text mean, a line each, three at most.
export function explain(text) {
  let left = text;
  const found = [];
  for (const [pattern, says] of words) {
    const rest = left.replace(pattern, " ");
    if (rest !== left) found.push(says);
    left = rest;
  }
  return found.slice(0, 3).join("\n");
}

function hover(event) {
  const node = event.target.closest?.(EXPLAINED);
  if (!node || node.title) return;
  const says = explain(node.textContent);
  if (says) node.title = says;
}

export function begin(place) {
  fetchWords();
  place.addEventListener("mouseover", hover);
}
