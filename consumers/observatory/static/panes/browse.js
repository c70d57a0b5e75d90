// §3.1: a message is found by arithmetic. Its bytes, coloured, and the next offset computed in front of you.
import { count, el, links } from "/static/dom.js";

export const title = "Browse";
export const uses = ["topic", "partition", "from"];

export function draw(view, state) {
  if (view.replay) return el("div", {}, el("h2", {}, "Messages"), el("p", { class: "warn" }, "A recording holds no message bytes; browse a live cluster."), links(view, "message"));
  const names = (view.topic?.partitions ?? []).map((p) => p.name);
  const partition = el("select", { name: "partition", id: "partition" }, names.map((name) => el("option", { selected: name === state.partition }, name)));
  const from = el("input", { name: "from", id: "from", value: state.from || "begin", size: 18, "aria-describedby": "from-hint" });
  const result = el("div", { id: "messages", "aria-live": "polite" });
  const go = () => { state.partition = partition.value; state.from = from.value; read(view.chosen.topic, partition.value, from.value, result); };
  partition.addEventListener("change", () => { from.value = "begin"; go(); });
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); go(); } },
    el("label", {}, "partition ", partition), " ", el("label", {}, "from ", from), " ", el("button", {}, "read"),
    el("span", { id: "from-hint", class: "hint" }, " begin, end, an offset, ~offset (the message around it), -20 (the last 20), @2026-01-31T12:00 (a time)"));
  if (partition.value) go();
  return el("div", {}, el("h2", {}, `Messages of ${view.chosen.topic}`), form, result, links(view, "message"));
}

export function update() {}  // what one reads stays put while the cluster moves on

async function read(topic, partition, from, result) {
  const answer = await fetch(`/api/messages?${new URLSearchParams({ topic, partition, from })}`);
  const body = await answer.json();
  if (!answer.ok) { result.replaceChildren(el("p", { class: "bad" }, body.error)); return; }
  if (!body.messages.length) { result.replaceChildren(el("p", { class: "hint" }, `No message after offset ${count(body.from)} yet.`)); return; }
  const detail = el("div", { id: "anatomy" });
  const choose = (index) => {
    detail.replaceChildren(anatomy(body.messages[index]));
    for (const [i, row] of [...list.children].entries()) row.firstChild.setAttribute("aria-pressed", i === index);
  };
  const list = el("ol", { class: "messages tall", id: "list" }, body.messages.map((message, i) =>
    el("li", {}, el("button", { type: "button", onclick: () => choose(i) }, el("b", {}, count(message.offset)), ` ${message.text}`))));
  list.addEventListener("keydown", (event) => {
    const next = { ArrowDown: "nextSibling", ArrowUp: "previousSibling" }[event.key];
    const row = next && document.activeElement.parentElement[next];
    if (row) { event.preventDefault(); row.firstChild.focus(); row.firstChild.click(); }
  });
  result.replaceChildren(el("div", { class: "columns browse" }, el("section", {}, el("h3", {}, `${body.messages.length} messages from offset ${count(body.from)}`), list), detail));
  choose(0);
}

function anatomy(message) {
  const parts = message.parts.map(([kind, hex, meaning]) => hex.match(/../g)?.map((byte) => el("span", { class: kind, title: meaning }, byte)) ?? []);
  const payload = message.parts.at(-1)[1];
  return el("section", {}, el("h3", {}, `The message at ${count(message.offset)}, byte by byte`),
    el("ul", { class: "fields" }, message.parts.map(([kind, , meaning]) => el("li", {}, el("span", { class: "hex" }, el("span", { class: kind }, kind)), ` ${meaning}`))),
    el("p", { class: "hex", id: "hex" }, parts),
    el("p", { id: "sum" }, el("strong", {}, `${count(message.offset)} + 4 + ${message.size - 4} = ${count(message.next_offset)}`), " is the offset of the next message: no index, only addition."),
    message.decoded === null ? [el("h3", {}, "As text"), el("pre", {}, text(payload))] : [el("h3", {}, `Decoded: ${message.format}`), el("pre", {}, JSON.stringify(message.decoded, null, 2))]);
}

const text = (hex) => new TextDecoder().decode(new Uint8Array((hex.match(/../g) ?? []).map((byte) => parseInt(byte, 16))));
