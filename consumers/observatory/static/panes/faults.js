// Break something: each card says beforehand what the paper promises, and afterwards what was seen.
import { address, el, links, time } from "/static/dom.js";

export const title = "Faults";

const OFF =
  "Off. Start the page with --allow-faults (the demo does) to kill, pause, expire and corrupt things from here.";
const NOTHING_YET = "Nothing was broken yet. Choose below, then watch here and in Ownership.";

export function draw(view) {
  if (!view.faults) {
    return el("div", {}, el("h2", {}, "Faults"), el("p", { class: "hint" }, OFF), links(view, "delivery"));
  }
  return el(
    "div",
    {},
    el("h2", {}, "What was seen"),
    el("ol", { class: "log plain", id: "seen", "aria-live": "polite" }, seen(view)),
    el("h2", {}, "Break something"),
    el("div", { class: "cards", id: "cards" }, view.faults.kinds.map(card)),
    links(view, "delivery"),
    links(view, "rebalance"),
  );
}

export function update(pane, view) {
  pane.querySelector("#seen")?.replaceChildren(...seen(view));
  for (const kind of view.faults?.kinds ?? []) {
    const select = pane.querySelector(`#target-${kind.name}`);
    const wanted = kind.targets.join("\n");
    pane.querySelector(`#do-${kind.name}`)?.toggleAttribute("disabled", !kind.targets.length);
    if (select && select.dataset.targets !== wanted && document.activeElement !== select) {
      const chosen = select.value;
      select.replaceChildren(...kind.targets.map((target) => el("option", {}, target)));
      if (kind.targets.includes(chosen)) select.value = chosen;
      select.dataset.targets = wanted;
    }
  }
}

function seen(view) {
  const found = view.faults?.seen ?? [];
  if (!found.length) return [el("li", { class: "hint" }, NOTHING_YET)];
  return found.map((one) => {
    const promised = one.verdict.startsWith("as promised") ? "good" : null;
    const verdict = el("strong", { class: one.final ? promised : "warn" }, one.verdict);
    const there = one.link ? el("a", { href: address("browse", one.link), class: "there" }, "see the byte") : null;
    return el("li", {}, `${time(one.t)} ${one.title}, ${one.target}: `, verdict, there ? " " : null, there);
  });
}

function card(kind) {
  const options = kind.targets.map((name) => el("option", {}, name));
  const label = `${kind.title}: which`;
  const attributes = { id: `target-${kind.name}`, "data-targets": kind.targets.join("\n"), "aria-label": label };
  const target = el("select", attributes, options);
  const said = el("span", { role: "status" });
  const go = async () => {
    said.textContent = " …";
    said.textContent = ` ${await strike(kind, target.value)}`;
  };
  const button = { class: "danger", type: "button", id: `do-${kind.name}`, disabled: !kind.targets.length };
  return el(
    "section",
    { class: "card" },
    el("h3", {}, kind.title),
    el("p", {}, el("strong", {}, "The paper: "), kind.promise),
    target,
    " ",
    el("button", { ...button, onclick: go }, kind.verb),
    said,
  );
}

// Do it; what the page says of it.
async function strike(kind, target) {
  const answer = await fetch("/api/fault", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": kind.token },
    body: JSON.stringify({ name: kind.name, target }),
  });
  const body = await answer.json();
  return body.said ?? body.error;
}
