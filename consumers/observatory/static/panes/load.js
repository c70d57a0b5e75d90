// §4: the nightly load into the warehouse, and the audit that proves nothing is missing.
import { bytes, count, el, links, table, time } from "/static/dom.js";

export const title = "Load";

export function draw(view) {
  if (!view.loads.length) return el("div", {}, el("h2", {}, "Loads into the warehouse"), el("p", { class: "hint" }, "No load has run yet. In the demo the first starts at the end of the first minute."), links(view, "load"), links(view, "audit"));
  const newest = view.loads[0];
  return el("div", {}, el("h2", {}, "Loads into the warehouse"),
    table("Newest first; the audit compares with what the producers say they sent, window by window", [["planned"], ["load"], ["state"], ["rows", 1], ["dead", 1], ["bytes", 1], ["seconds", 1], ["audit (windows)"]],
      view.loads.map((l) => [time(l.t), l.load, el("span", { class: l.state === "committed" ? "good" : "bad" }, l.error ? `${l.state}: ${l.error}` : l.state), count(l.rows), count(l.dead), bytes(l.bytes), l.seconds, verdict(l.audit)])),
    el("h2", {}, `What ${newest.load} loaded`),
    el("div", { class: "columns" },
      table("By topic", [["topic"], ["rows", 1], ["dead", 1], ["bytes", 1]], newest.topics.map((t) => [t.topic, count(t.rows), count(t.dead), bytes(t.bytes)])),
      table("Ranges of bytes, kept with the rows in one commit", [["topic"], ["partition"], ["from", 1], ["to", 1], ["bytes", 1]], newest.ranges.slice(0, 200).map((r) => [r.topic, r.partition, count(r.from), count(r.to), bytes(r.to - r.from)]))),
    links(view, "load"), links(view, "audit"));
}

function verdict(audit) {
  const found = Object.entries(audit);
  if (!found.length) return "–";
  return found.map(([name, n]) => el("span", { class: name === "complete" ? "good" : name === "short" || name === "over" ? "bad" : "warn" }, `${count(n)} ${name} `));
}
