// §3.1 Simple storage: a partition is a row of files named by their first offset; only flushed bytes can be read.
import { bytes, colour, count, el, links, svg, table } from "/static/dom.js";

export const title = "Segments";
const LEFT = 70, WIDTH = 980, ROW = 46;

export function draw(view, state) {
  const topic = view.topic;
  if (!topic) return el("p", { class: "hint" }, "No topic yet: publish something and it appears here.");
  const groups = [...new Set(topic.partitions.flatMap((partition) => Object.keys(partition.groups)))].sort();
  return el("div", {},
    el("h2", {}, `Segments of ${topic.name}`),
    el("p", { class: "hint" }, "Each bar is a file, named by the offset of its first byte. Hatched = written but not flushed, so nobody can fetch it yet. ",
      "Ticks are the offsets groups have stored. Retention eats from the left. Click a bar to read messages there."),
    legend(groups), picture(topic, groups, state),
    table("The same in numbers (bytes)", [["partition"], ["first offset", 1], ["flushed end", 1], ["written end", 1], ["on disk", 1], ["files", 1], ...groups.map((group) => [group, 1])],
      topic.partitions.map((p) => [p.name, count(p.first), count(p.flushed), count(p.end), bytes(p.size), p.segments.length, ...groups.map((group) => count(p.groups[group]))])),
    links(view, "segments"), links(view, "flush"), links(view, "retention"));
}

function legend(groups) {
  return el("p", {}, groups.map((group, i) => el("span", {}, el("span", { class: "mono", style: `color:${colour(i)}` }, "┃ "), `${group}  `)));
}

function picture(topic, groups, state) {
  const rows = topic.partitions.map((partition, i) => row(partition, i, groups, topic.name, state));
  return el("div", { class: "scroll" }, svg("svg", { width: LEFT + WIDTH + 20, height: topic.partitions.length * ROW + 8, role: "img", "aria-label": `files of ${topic.name}; the table below says the same` },
    svg("defs", {}, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 3, height: 6, fill: "#009e73" }))), rows));
}

function row(partition, index, groups, topic, state) {
  const from = partition.first, to = Math.max(partition.end, from + 1);
  const x = (offset) => LEFT + (WIDTH * (Math.min(Math.max(offset, from), to) - from)) / (to - from);
  const y = index * ROW + 6;
  const open = (offset) => () => { location.hash = `#browse?${new URLSearchParams({ topic, group: state.group })}`; sessionStorage.browse = JSON.stringify({ topic, partition: partition.name, from: String(offset) }); };
  const bars = partition.segments.map(([start, size, flushed], i) => [
    svg("rect", { class: `segment clickable${i === partition.segments.length - 1 ? " active" : ""}`, x: x(start), y, width: Math.max(x(start + flushed) - x(start), 1), height: 20, onclick: open(start) },
      svg("title", {}, `${String(start).padStart(20, "0")}.kafka: ${bytes(size)}, ${bytes(size - flushed)} not flushed`)),
    size > flushed ? svg("rect", { class: "unflushed", x: x(start + flushed), y, width: Math.max(x(start + size) - x(start + flushed), 2), height: 20 }) : null,
  ]);
  const ticks = groups.map((group, i) => partition.groups[group] === undefined ? null :
    svg("line", { class: "tick", stroke: colour(i), x1: x(partition.groups[group]), x2: x(partition.groups[group]), y1: y - 4, y2: y + 24 }, svg("title", {}, `${group} is at ${partition.groups[group]}`)));
  return svg("g", {}, svg("text", { x: 0, y: y + 15 }, partition.name), bars, ticks,
    svg("text", { class: "soft", x: LEFT, y: y + 35 }, count(from)), svg("text", { class: "soft", x: LEFT + WIDTH, y: y + 35, "text-anchor": "end" }, count(partition.flushed)));
}
