// §3.1: a message is found by arithmetic. Its bytes, coloured, and the next offset computed in front of you.
import { count, el, links, table } from "/static/dom.js";

export const title = "Browse";

export function draw(view, state) {
  const wanted = JSON.parse(sessionStorage.browse ?? "{}");
  const partition = el("select", { name: "partition" }, (view.topic?.partitions ?? []).map((p) => el("option", { selected: p.name === wanted.partition }, p.name)));
  const from = el("input", { name: "from", value: wanted.from ?? "begin", size: 18, "aria-describedby": "from-hint" });
  const result = el("div", { "aria-live": "polite" });
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); read(state.topic, partition.value, from.value, result); } },
    el("label", {}, "partition ", partition), " ", el("label", {}, "from ", from), " ", el("button", {}, "read"),
    el("p", { id: "from-hint", class: "hint" }, "begin, end, an offset, -20 (the last 20), or @2026-01-31T12:00 (a time)"));
  if (partition.value) read(state.topic, partition.value, from.value, result);
  return el("div", {}, el("h2", {}, `Messages of ${state.topic}`), view.replay ? el("p", { class: "warn" }, "A recording holds no message bytes; browse a live cluster.") : form, result, links(view, "message"));
}

export function update() {}  // what one reads stays put while the cluster moves on

async function read(topic, partition, from, result) {
  if (!partition) return;
  const answer = await fetch(`/api/messages?${new URLSearchParams({ topic, partition, from })}`);
  const body = await answer.json();
  if (!answer.ok) { result.replaceChildren(el("p", { class: "bad" }, body.error)); return; }
  const detail = el("div", {});
  const rows = body.messages.map((message) => [el("button", { type: "button", onclick: () => detail.replaceChildren(anatomy(message)) }, count(message.offset)), count(message.next_offset), message.size, message.text]);
  result.replaceChildren(table(`${body.messages.length} messages from offset ${body.from}`, [["offset", 1], ["next", 1], ["size", 1], ["payload"]], rows), detail);
  if (body.messages.length) detail.replaceChildren(anatomy(body.messages[0]));
}

function anatomy(message) {
  const parts = message.parts.map(([kind, hex, meaning]) => hex.match(/../g)?.map((byte) => el("span", { class: kind, title: meaning }, byte)) ?? []);
  return el("section", {}, el("h3", {}, `The message at ${count(message.offset)}, byte by byte`),
    el("p", {}, message.parts.map(([kind, , meaning]) => el("span", {}, el("span", { class: "hex" }, el("span", { class: kind }, kind)), ` ${meaning}  `))),
    el("p", { class: "hex" }, parts),
    el("p", {}, el("strong", {}, `${count(message.offset)} + 4 + ${message.size - 4} = ${count(message.offset + message.size)}`), " is the offset of the next message: no index, only addition."),
    message.decoded ? el("pre", {}, JSON.stringify(message.decoded, null, 2)) : null);
}
