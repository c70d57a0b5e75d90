// §3: brokers and topics.
import { address, bytes, count, el, links, table, time } from "/static/dom.js";

export const title = "Brokers";

export function draw(view) {
  return el(
    "div",
    {},
    el("h2", {}, "Brokers"),
    brokers(view.brokers),
    el("h2", {}, "Topics"),
    topics(view.topic_table),
    el("h2", {}, "What happened, newest first"),
    events(view.events),
    links(view, "broker"),
    links(view, "sendfile"),
  );
}

const rate = (n) => (n === null ? "–" : `${bytes(n)}/s`);

function who(principals) {
  const named = Object.entries(principals).slice(0, 5);
  return named.map(([name, n]) => `${name} ×${n}`).join(", ") || "–";
}

function brokers(found) {
  const columns = [
    ["id", 1],
    ["address"],
    ["state"],
    ["connections", 1],
    ["who"],
    ["in", 1],
    ["out", 1],
    ["messages/s", 1],
    ["on disk", 1],
  ];
  const rows = found.map((b) => [
    b.id,
    `${b.host}:${b.port}`,
    el("span", { class: b.alive ? "good" : "bad" }, b.alive ? "registered" : "gone"),
    b.alive ? count(b.connections) : "–",
    b.alive ? who(b.principals) : "–",
    rate(b.in_rate),
    rate(b.out_rate),
    count(b.message_rate),
    bytes(b.size),
  ]);
  return table("Rates over the last seconds", columns, rows);
}

function topics(found) {
  const columns = [["topic"], ["partitions", 1], ["files", 1], ["on disk", 1], ["in", 1]];
  const rows = found.map((t) => [
    el("a", { id: `t-${t.name}`, href: address("segments", { topic: t.name }) }, t.name),
    t.partitions,
    t.segments,
    bytes(t.size),
    rate(t.rate),
  ]);
  return table("Over all brokers", columns, rows);
}

function events(found) {
  if (!found.length) return el("p", { class: "hint" }, "Nothing in the last minutes but routine.");
  const lines = found.map((event) =>
    el("li", {}, el("span", { class: "value" }, `${time(event.t)} ${event.source} `), event.text),
  );
  return el("ol", { class: "log plain mono", id: "events", tabindex: 0 }, lines);
}
