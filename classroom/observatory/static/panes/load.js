// §4: the nightly load into the warehouse, and the audit that proves nothing is missing.
import { bytes, count, el, links, table, time } from "/static/dom.js";

export const title = "Load";

const NONE_YET = "No load has run yet. In the demo the first starts at the end of the first minute.";
const CAPTION = "Newest first; the audit compares with what the producers say they sent, window by window";

export function draw(view) {
  const heading = el("h2", {}, "Loads into the warehouse");
  if (!view.loads.length) {
    return el("div", {}, heading, el("p", { class: "hint" }, NONE_YET), links(view, "load"), links(view, "audit"));
  }
  const newest = view.loads[0];
  return el(
    "div",
    {},
    heading,
    loads(view.loads),
    windows(newest),
    el("h2", {}, `What ${newest.load} loaded`),
    el("div", { class: "columns" }, topics(newest), ranges(newest)),
    links(view, "load"),
    links(view, "audit"),
  );
}

function loads(found) {
  const columns = [
    ["planned"],
    ["load"],
    ["state"],
    ["rows", 1],
    ["dead", 1],
    ["bytes", 1],
    ["seconds", 1],
    ["audit (windows)"],
  ];
  const rows = found.map((load) => [
    time(load.t),
    load.load,
    el("span", { class: load.state === "committed" ? "good" : "bad" }, state(load)),
    count(load.rows),
    count(load.dead),
    bytes(load.bytes),
    load.seconds,
    verdict(load.audit),
  ]);
  return table(CAPTION, columns, rows);
}

const state = (load) => (load.error ? `${load.state}: ${load.error}` : load.state);

// Every window that does not add up, by name: "5 short" alone helps nobody.
function windows(load) {
  if (!load.windows?.length) return null;
  const columns = [["topic"], ["window"], ["sent", 1], ["loaded", 1], ["verdict"], ["why"]];
  const rows = load.windows.map((window) => [
    window.topic,
    `${time(window.start_ms)} to ${time(window.start_ms + window.window_ms)}`,
    count(window.sent),
    count(window.loaded),
    el("span", { class: kindOf(window.verdict) }, window.verdict),
    window.why,
  ]);
  const heading = el("h2", {}, `Windows that do not add up after ${load.load}`);
  return el("section", { id: "windows" }, heading, table("", columns, rows));
}

function topics(load) {
  const columns = [["topic"], ["rows", 1], ["dead", 1], ["bytes", 1]];
  const rows = load.topics.map((t) => [t.topic, count(t.rows), count(t.dead), bytes(t.bytes)]);
  return table("By topic", columns, rows);
}

function ranges(load) {
  const columns = [["topic"], ["partition"], ["from", 1], ["to", 1], ["bytes", 1]];
  const shown = load.ranges.slice(0, 200);
  const rows = shown.map((r) => [r.topic, r.partition, count(r.from), count(r.to), bytes(r.to - r.from)]);
  return table("Ranges of bytes, kept with the rows in one commit", columns, rows);
}

function verdict(audit) {
  const found = Object.entries(audit);
  if (!found.length) return "–";
  return found.map(([name, n]) => el("span", { class: kindOf(name) }, `${count(n)} ${name} `));
}

function kindOf(verdict) {
  if (verdict === "complete") return "good";
  return verdict.startsWith("short") || verdict.startsWith("over") ? "bad" : "warn";
}
