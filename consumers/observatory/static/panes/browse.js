// §3.1: a message is found by arithmetic. Its bytes, coloured, and the next offset computed in front of you.
import { count, el, links } from "/static/dom.js";

export const title = "Browse";
export const uses = ["topic", "partition", "from"];

const NO_BYTES = "A recording holds no message bytes; browse a live cluster.";
const FROM_HINT =
  " begin, end, an offset, ~offset (the message around it), -20 (the last 20), @2026-01-31T12:00 (a time)";

export function draw(view, state) {
  if (view.replay) {
    return el("div", {}, el("h2", {}, "Messages"), el("p", { class: "warn" }, NO_BYTES), links(view, "message"));
  }
  const names = (view.topic?.partitions ?? []).map((p) => p.name);
  const options = names.map((name) => el("option", { selected: name === state.partition }, name));
  const partition = el("select", { name: "partition", id: "partition" }, options);
  const begin = { name: "from", id: "from", value: state.from || "begin", size: 18, "aria-describedby": "from-hint" };
  const from = el("input", begin);
  const result = el("div", { id: "messages", "aria-live": "polite" });
  const go = () => {
    state.partition = partition.value;
    state.from = from.value;
    read(view.chosen.topic, partition.value, from.value, result);
  };
  partition.addEventListener("change", () => {
    from.value = "begin";
    go();
  });
  const submit = (event) => {
    event.preventDefault();
    go();
  };
  const form = el(
    "form",
    { onsubmit: submit },
    el("label", {}, "partition ", partition),
    " ",
    el("label", {}, "from ", from),
    " ",
    el("button", {}, "read"),
    el("span", { id: "from-hint", class: "hint" }, FROM_HINT),
  );
  if (partition.value) go();
  return el("div", {}, el("h2", {}, `Messages of ${view.chosen.topic}`), form, result, links(view, "message"));
}

// What one reads stays put while the cluster moves on.
export function update() {}

async function read(topic, partition, from, result) {
  const answer = await fetch(`/api/messages?${new URLSearchParams({ topic, partition, from })}`);
  const body = await answer.json();
  if (!answer.ok) {
    result.replaceChildren(el("p", { class: "bad" }, body.error));
    return;
  }
  if (!body.messages.length) {
    result.replaceChildren(el("p", { class: "hint" }, `No message after offset ${count(body.from)} yet.`));
    return;
  }
  const detail = el("div", { id: "anatomy" });
  const choose = (index) => {
    detail.replaceChildren(anatomy(body.messages[index]));
    for (const [i, row] of [...list.children].entries()) row.firstChild.setAttribute("aria-pressed", i === index);
  };
  const list = el(
    "ol",
    { class: "messages tall", id: "list" },
    body.messages.map((message, i) => el("li", {}, line(message, () => choose(i)))),
  );
  list.addEventListener("keydown", (event) => {
    const next = { ArrowDown: "nextSibling", ArrowUp: "previousSibling" }[event.key];
    const row = next && document.activeElement.parentElement[next];
    if (!row) return;
    event.preventDefault();
    row.firstChild.focus();
    row.firstChild.click();
  });
  const heading = el("h3", {}, `${body.messages.length} messages from offset ${count(body.from)}`);
  result.replaceChildren(el("div", { class: "columns browse" }, el("section", {}, heading, list), detail));
  choose(0);
}

function line(message, onclick) {
  const warning = message.bad ? el("b", {}, " damaged ") : " ";
  const attributes = { type: "button", class: message.bad ? "bad" : null, onclick };
  return el("button", attributes, el("b", {}, count(message.offset)), warning, message.text);
}

function anatomy(message) {
  const parts = message.parts.map(([kind, hex, meaning]) =>
    (hex.match(/../g) ?? []).map((byte) => el("span", { class: kindOf(kind, message), title: meaning }, byte)),
  );
  const fields = message.parts.map(([kind, , meaning]) => {
    const name = el("span", { class: "hex" }, el("span", { class: kindOf(kind, message) }, kind));
    return el("li", { class: kind === "crc" && message.bad ? "bad" : null }, name, ` ${meaning}`);
  });
  const sum = `${count(message.offset)} + 4 + ${message.size - 4} = ${count(message.next_offset)}`;
  return el(
    "section",
    { class: message.bad ? "damaged" : null },
    el("h3", {}, `The message at ${count(message.offset)}, byte by byte`),
    message.bad ? el("p", { class: "bad", id: "bad-entry" }, damage(message)) : null,
    el("ul", { class: "fields" }, fields),
    el("p", { class: "hex", id: "hex" }, parts),
    el("p", { id: "sum" }, el("strong", {}, sum), " is the offset of the next message: no index, only addition."),
    body(message),
  );
}

const kindOf = (kind, message) => (kind === "crc" && message.bad ? "crc wrong" : kind);

function damage(message) {
  const next = count(message.next_offset);
  return `This message is damaged: ${message.bad}. A reader stops here and says so; the next message is at ${next}.`;
}

function body(message) {
  if (message.decoded === null) return [el("h3", {}, "As text"), el("pre", {}, text(message.parts.at(-1)[1]))];
  return [el("h3", {}, `Decoded: ${message.format}`), el("pre", {}, JSON.stringify(message.decoded, null, 2))];
}

function text(hex) {
  const values = (hex.match(/../g) ?? []).map((byte) => parseInt(byte, 16));
  return new TextDecoder().decode(new Uint8Array(values));
}
