// §3: brokers and topics.
import { address, bytes, count, el, links, table, time } from "/static/dom.js";

export const title = "Brokers";

export function draw(view) {
  const rate = (n) => (n === null ? "–" : `${bytes(n)}/s`);
  const who = (principals) => Object.entries(principals).slice(0, 5).map(([name, n]) => `${name} ×${n}`).join(", ") || "–";
  return el("div", {}, el("h2", {}, "Brokers"),
    table("Rates over the last seconds", [["id", 1], ["address"], ["state"], ["connections", 1], ["who"], ["in", 1], ["out", 1], ["messages/s", 1], ["on disk", 1]],
        view.brokers.map((b) => [b.id, `${b.host}:${b.port}`, el("span", { class: b.alive ? "good" : "bad" }, b.alive ? "registered" : "gone"), count(b.connections), who(b.principals), rate(b.in_rate), rate(b.out_rate), count(b.message_rate), bytes(b.size)])),
    el("h2", {}, "Topics"),
    table("Over all brokers", [["topic"], ["partitions", 1], ["files", 1], ["on disk", 1], ["in", 1]],
        view.topic_table.map((t) => [el("a", { id: `t-${t.name}`, href: address("segments", { topic: t.name }) }, t.name), t.partitions, t.segments, bytes(t.size), rate(t.rate)])),
    el("h2", {}, "What happened, newest first"),
    view.events.length ? el("ol", { class: "log plain mono", id: "events" }, view.events.map((event) => el("li", {}, el("span", { class: "value" }, `${time(event.t)} ${event.source} `), event.text))) : el("p", { class: "hint" }, "Nothing in the last minutes but routine."),
    links(view, "broker"), links(view, "sendfile"));
}
