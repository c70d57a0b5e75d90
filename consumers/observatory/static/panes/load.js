// §4: the nightly load into the warehouse, and the audit that proves nothing is missing.
import { bytes, count, el, links, table, time } from "/static/dom.js";

export const title = "Load";

export function draw(view) {
  if (!view.loads.length) return el("div", {}, el("h2", {}, "Loads"), el("p", { class: "hint" }, "No load has run yet. In the demo the first starts at the end of the first minute."), links(view, "load"));
  return el("div", {}, el("h2", {}, "Loads into the warehouse"),
    table("Newest first", [["started"], ["topic"], ["state"], ["rows", 1], ["dead rows", 1], ["bytes", 1], ["seconds", 1], ["audit"]],
      view.loads.map((l) => [time(l.t), l.topic, l.state, count(l.rows), count(l.dead), bytes(l.bytes), l.seconds, verdict(l.audit)])),
    view.loads[0].ranges ? table("Ranges of the newest", [["topic"], ["partition"], ["from", 1], ["to", 1], ["rows", 1]], view.loads[0].ranges.map((r) => [r.topic, r.partition, count(r.start), count(r.end), count(r.rows)])) : null,
    links(view, "load"), links(view, "audit"));
}

const verdict = (text) => el("span", { class: text === "complete" ? "good" : text ? "warn" : "" }, text ?? "–");
