// §3.1 Simple storage: a partition is a row of files named by their first offset; only flushed bytes can be read.
import { address, bytes, colour, count, el, links, svg, table } from "/static/dom.js";

export const title = "Segments";
export const uses = ["topic"];
const LEFT = 56, HIGH = 18, ROW = 34;

export function draw(view, state, width) {
  const topic = view.topic;
  if (!topic) return el("p", { class: "hint" }, "No topic yet: publish something and it appears here.");
  const groups = [...new Set(topic.partitions.flatMap((partition) => Object.keys(partition.groups)))].sort();
  const browse = (partition, from) => address("browse", { topic: topic.name, partition, from });
  return el("div", {},
    el("h2", {}, `Segments of ${topic.name}`),
    el("p", { class: "hint" }, "Each bar is a file, named by the offset of its first byte; the number in it is that offset. Green = the file that is written. ",
      "Hatched = written but not flushed: nobody can fetch it yet. Dotted = deleted by retention. Click anywhere in a bar to read the message there."),
    el("p", { class: "legend" }, groups.length ? "offsets stored by " : "", groups.map((group, i) => el("span", {}, el("i", { class: "chip", style: `background:${colour(i)}` }), `${group} `))),
    missing(topic),
    picture(topic, groups, browse, Math.max(width - LEFT - 90, 400)),
    table("The same in numbers (bytes)", [["partition"], ["first offset", 1], ["flushed end", 1], ["written end", 1], ["on disk", 1], ["files", 1], ...groups.map((group) => [group, 1])],
      topic.partitions.map((p) => [el("a", { id: `p-${p.name}`, href: browse(p.name, p.first) }, p.name), count(p.first), count(p.flushed), count(p.end), bytes(p.size), p.segments.length, ...groups.map((group) => count(p.groups[group]))])),
    links(view, "segments"), links(view, "flush"), links(view, "retention"));
}

// Files that somebody else deleted: told until they are back or somebody says that it is known.
function missing(topic) {
  const gone = topic.partitions.flatMap((p) => (p.missing ?? []).map((one) => `${p.name}: ${one.file} is gone, with the offsets ${count(one.start)} to ${count(one.end)}`));
  return gone.length === 0 ? null : el("div", { id: "missing-files" },
    el("ul", { class: "plain mono bad" }, gone.map((line) => el("li", {}, line))),
    el("p", { class: "hint" }, "Put the files back and restart the broker, or say that you know: kafka2011 log accept --admin HOST:PORT"));
}

// All partitions on one axis of offsets, so that their sizes can be compared.
function picture(topic, groups, browse, width) {
  const first = Math.min(...topic.partitions.map((p) => p.first)), to = Math.max(...topic.partitions.map((p) => p.end), first + 1);
  const from = Math.max(0, first - (to - first) * 0.08);
  const x = (offset) => LEFT + (width * (Math.min(Math.max(offset, from), to) - from)) / (to - from);
  const offsetAt = (event) => Math.round(from + ((event.clientX - event.currentTarget.ownerSVGElement.getBoundingClientRect().left - LEFT) / width) * (to - from));
  const rows = topic.partitions.map((partition, index) => row(partition, 4 + index * ROW, { x, offsetAt, groups, browse }));
  const y = topic.partitions.length * ROW + 10;
  return el("div", { class: "scroll", id: "segments-picture" }, svg("svg", { width: LEFT + width + 90, height: y + 8, role: "img", "aria-label": `files of ${topic.name}; the table below says the same` },
    svg("defs", {}, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 3, height: 6, fill: "#009e73" }))), rows,
    svg("text", { class: "soft", x: LEFT, y }, `offset ${count(from)}`), svg("text", { class: "soft", x: LEFT + width, y, "text-anchor": "end" }, count(to))));
}

function row(partition, y, { x, offsetAt, groups, browse }) {
  const open = (event) => { location.hash = browse(partition.name, `~${Math.min(Math.max(offsetAt(event), partition.first), Math.max(partition.flushed - 1, 0))}`); };
  const bars = partition.segments.map(([start, size, flushed], i) => {
    const width = Math.max(x(start + flushed) - x(start), 1), label = count(start), last = i === partition.segments.length - 1;
    return [
      svg("rect", { class: `segment clickable${last ? " active" : ""}`, x: x(start), y, width, height: HIGH, onclick: open },
        svg("title", {}, `${String(start).padStart(20, "0")}.kafka: ${bytes(size)}, ${bytes(size - flushed)} not flushed`)),
      width > label.length * 8 + 6 ? svg("text", { class: "inside", x: x(start) + 4, y: y + 13 }, label) : null,
      size > flushed ? svg("rect", { class: "unflushed", x: x(start + flushed), y, width: Math.max(x(start + size) - x(start + flushed), 5), height: HIGH }, svg("title", {}, `${bytes(size - flushed)} not flushed`)) : null,
    ];
  });
  const ticks = groups.map((group, i) => partition.groups[group] === undefined ? null :
    svg("line", { class: "tick", stroke: colour(i), x1: x(partition.groups[group]), x2: x(partition.groups[group]), y1: y - 4 + (i % 3) * 2, y2: y + HIGH + 4 }, svg("title", {}, `${group} is at ${partition.groups[group]}`)));
  const oldest = partition.segments[0]?.[0] ?? partition.first;
  const eaten = oldest > 0 ? svg("rect", { class: "eaten", x: LEFT, y, width: Math.max(x(oldest) - LEFT, 0), height: HIGH }, svg("title", {}, `deleted by retention: everything before ${oldest}`)) : null;
  return svg("g", {}, svg("text", { x: 0, y: y + 14 }, partition.name), eaten, bars, ticks, svg("text", { class: "soft", x: x(partition.end) + 10, y: y + 13 }, count(partition.flushed)));
}
