// §3.1 Simple storage: a partition is a row of files named by their first offset; only flushed bytes can be read.
import { address, bytes, count, el, links, svg, table } from "/static/dom.js";
import { chip, colour } from "/static/paint.js";
import { strikeBar, updateStrikeBar } from "/static/strike.js";

export const title = "Segments";
export const uses = ["topic"];
const LEFT = 56;
const RIGHT = 110;
const HIGH = 18;
const ROW = 34;

// Faults beside their effect, where the page may break things.
export const tools = (view, state) => (view.faults ? strikeBar(view, state) : null);

export const updateTools = updateStrikeBar;

export function draw(view, state, width) {
  const topic = view.topic;
  if (!topic) return el("p", { class: "hint" }, "No topic yet: publish something and it appears here.");
  const groups = [...new Set(topic.partitions.flatMap((partition) => Object.keys(partition.groups)))].sort();
  const browse = (partition, from) => address("browse", { topic: topic.name, partition, from });
  return el(
    "div",
    {},
    el("h2", {}, `Segments of ${topic.name}`),
    el(
      "p",
      { class: "hint" },
      "Each bar is a file, named by the offset of its first byte; the number in it is that offset. ",
      "Click anywhere in a bar to read the message there.",
    ),
    legend(groups),
    unreadable(topic),
    missing(topic),
    picture(topic, groups, browse, Math.max(width - LEFT - RIGHT, 400)),
    numbers(topic, groups, browse),
    indexes(topic),
    members(topic),
    links(view, "segments"),
    links(view, "flush"),
    links(view, "retention"),
  );
}

function legend(groups) {
  const size = { width: 26, height: 12 };
  const swatch = (kind) => svg("svg", { class: "swatch", ...size }, svg("rect", { class: kind, ...size }));
  return el(
    "p",
    { class: "legend", id: "segments-legend" },
    el("span", {}, swatch("segment"), " a full file"),
    el("span", {}, swatch("segment active"), " the file that is written"),
    el("span", {}, swatch("unflushed"), " written, not flushed: nobody can fetch it yet"),
    el("span", {}, swatch("eaten"), " deleted by retention"),
    el("span", {}, swatch("segment unreadable"), " its broker is gone: nobody can read it"),
    groups.map((group, i) => el("span", {}, chip(colour(i)), ` the tick of ${group}: its stored offset`)),
  );
}

// A broker that is gone takes its partitions with it: one copy of each, as the paper has it.
function unreadable(topic) {
  const brokers = new Map();
  for (const partition of topic.partitions) {
    if (partition.gone === null) continue;
    brokers.set(partition.gone, [...(brokers.get(partition.gone) ?? []), partition.name]);
  }
  if (!brokers.size) return null;
  const lines = [...brokers].map(
    ([broker, names]) => `Broker ${broker} is gone: ${names.join(", ")} cannot be read until it is back.`,
  );
  return el("ul", { class: "plain bad", id: "unreadable" }, lines.map((line) => el("li", {}, line)));
}

// Files that somebody else deleted: told until they are back or somebody says that it is known.
function missing(topic) {
  const gone = topic.partitions.flatMap((partition) =>
    (partition.missing ?? []).map(
      (one) => `${partition.name}: ${one.file} is gone, with the offsets ${count(one.start)} to ${count(one.end)}`,
    ),
  );
  if (!gone.length) return null;
  return el(
    "div",
    { id: "missing-files" },
    el("ul", { class: "plain mono bad" }, gone.map((line) => el("li", {}, line))),
    el(
      "p",
      { class: "hint" },
      "Put the files back and restart the broker, or say that you know: kafka2011 log accept --admin HOST:PORT",
    ),
  );
}

function numbers(topic, groups, browse) {
  const columns = [
    ["partition"],
    ["state"],
    ["first offset", 1],
    ["flushed end", 1],
    ["written end", 1],
    ["on disk", 1],
    ["files", 1],
    ...groups.map((group) => [group, 1]),
  ];
  const rows = topic.partitions.map((p) => [
    el("a", { id: `p-${p.name}`, href: browse(p.name, p.first) }, p.name),
    p.gone === null ? "readable" : el("span", { class: "bad" }, `broker ${p.gone} is gone`),
    count(p.first),
    count(p.flushed),
    count(p.end),
    bytes(p.size),
    p.segments.length,
    ...groups.map((group) => count(p.groups[group])),
  ]);
  const unit = topic.partitions.some((p) => p.era === "modern") ? "records" : "bytes";
  return table(`The same in numbers (offsets are ${unit})`, columns, rows);
}

// Of a modern log: the indexes beside each file. A log of 2011 has none.
function indexes(topic) {
  const modern = topic.partitions.filter((partition) => partition.era === "modern");
  if (!modern.length) return null;
  const columns = [["partition"], ["file"], ["bytes", 1], ["offset index", 1], ["time index", 1], ["cleaned by"]];
  const rows = modern.flatMap((partition) =>
    partition.files.map(([start, size, index, times]) => [
      partition.name,
      `${String(start).padStart(20, "0")}.log`,
      bytes(size),
      `${count(index)} entries`,
      `${count(times)} entries`,
      partition.cleanup,
    ]),
  );
  return el("section", { id: "indexes" }, table("Files and their indexes (offsets count records here)", columns, rows));
}

// Of a broker with standbys: who leads, who is in sync, how far each has come, where each epoch began.
function members(topic) {
  const held = topic.partitions.filter((partition) => partition.held);
  if (!held.length) return null;
  const columns = [["partition"], ["leads"], ["in sync"], ["watermark", 1], ["members"], ["epochs"]];
  const rows = held.map((partition) => [
    partition.name,
    partition.held.leader,
    partition.held.in_sync.join(", "),
    count(partition.flushed),
    Object.entries(partition.held.ends)
      .map(([member, end]) => `${member} to ${count(end)}`)
      .join(", "),
    partition.held.epochs.map(([epoch, start]) => `${epoch} from ${count(start)}`).join(", "),
  ]);
  return el(
    "section",
    { id: "members" },
    table("Members: readers see what the leader has flushed and every member in sync holds", columns, rows),
  );
}

// All partitions on one axis of offsets, so that their sizes can be compared.
function picture(topic, groups, browse, width) {
  const first = Math.min(...topic.partitions.map((p) => p.first));
  const to = Math.max(...topic.partitions.map((p) => p.end), first + 1);
  const from = Math.max(0, first - (to - first) * 0.08);
  const x = (offset) => LEFT + (width * (Math.min(Math.max(offset, from), to) - from)) / (to - from);
  const offsetAt = (event) => {
    const left = event.currentTarget.ownerSVGElement.getBoundingClientRect().left + LEFT;
    return Math.round(from + ((event.clientX - left) / width) * (to - from));
  };
  const rows = topic.partitions.map((partition, i) => row(partition, 4 + i * ROW, { x, offsetAt, groups, browse }));
  const y = topic.partitions.length * ROW + 10;
  const label = `files of ${topic.name}; the table below says the same`;
  return el(
    "div",
    { class: "scroll", id: "segments-picture", tabindex: 0, role: "region", "aria-label": "files" },
    svg(
      "svg",
      { width: LEFT + width + RIGHT, height: y + 8, role: "img", "aria-label": label },
      svg("defs", {}, stripes("hatch", "#009e73"), stripes("gone", "#b3261e")),
      rows,
      svg("text", { class: "soft", x: LEFT, y }, `offset ${count(from)}`),
      svg("text", { class: "soft", x: LEFT + width, y, "text-anchor": "end" }, count(to)),
    ),
  );
}

function stripes(id, fill) {
  const turned = { width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  return svg("pattern", { id, ...turned }, svg("rect", { width: id === "gone" ? 2 : 3, height: 6, fill }));
}

function row(partition, y, { x, offsetAt, groups, browse }) {
  const last = Math.max(partition.flushed - 1, 0);
  const open = (event) => {
    const offset = Math.min(Math.max(offsetAt(event), partition.first), last);
    location.hash = browse(partition.name, `~${offset}`);
  };
  const bars = partition.segments.map((segment, i) =>
    file(segment, { x, y, open, gone: partition.gone, active: i === partition.segments.length - 1 }),
  );
  const end = partition.gone === null ? count(partition.flushed) : "not readable";
  return svg(
    "g",
    {},
    svg("text", { x: 0, y: y + 14, class: partition.gone === null ? null : "bad" }, partition.name),
    retired(partition, x, y),
    bars,
    groups.map((group, i) => tick(group, i, partition.groups[group], x, y)),
    standbys(partition, x, y),
    svg("text", { class: partition.gone === null ? "soft" : "bad", x: x(partition.end) + 10, y: y + 13 }, end),
  );
}

function file([start, size, flushed], { x, y, open, gone, active }) {
  const width = Math.max(x(start + flushed) - x(start), 1);
  const label = count(start);
  const kind = gone !== null ? "unreadable" : active ? "active" : "";
  const unflushed = bytes(size - flushed);
  const state = gone === null ? `${unflushed} not flushed` : `broker ${gone} is gone: it waits, unreadable`;
  const tail = { x: x(start + flushed), y, width: Math.max(x(start + size) - x(start + flushed), 5), height: HIGH };
  return [
    svg(
      "rect",
      { class: `segment clickable ${kind}`, x: x(start), y, width, height: HIGH, onclick: open },
      svg("title", {}, `${String(start).padStart(20, "0")}.kafka: ${bytes(size)}, ${state}`),
    ),
    width > label.length * 8 + 6 ? svg("text", { class: "inside", x: x(start) + 4, y: y + 13 }, label) : null,
    size > flushed && gone === null
      ? svg("rect", { class: "unflushed", ...tail }, svg("title", {}, `${unflushed} not flushed`))
      : null,
  ];
}

function tick(group, i, offset, x, y) {
  if (offset === undefined) return null;
  const place = { x1: x(offset), x2: x(offset), y1: y - 4 + (i % 3) * 2, y2: y + HIGH + 4 };
  return svg("line", { class: "tick", stroke: colour(i), ...place }, svg("title", {}, `${group} is at ${offset}`));
}

// Where each epoch began, below the files; how far each member has come, above them.
function standbys(partition, x, y) {
  if (!partition.held) return [];
  const mark = (offset, top, bottom, says) =>
    svg(
      "line",
      { class: "tick", stroke: "#555", x1: x(offset), x2: x(offset), y1: top, y2: bottom },
      svg("title", {}, says),
    );
  return [
    partition.held.epochs.map(([epoch, start]) =>
      mark(start, y + HIGH, y + HIGH + 6, `epoch ${epoch} begins at ${start}`),
    ),
    Object.entries(partition.held.ends).map(([member, end]) =>
      mark(end, y - 6, y, `member ${member} has everything before ${end}`),
    ),
    mark(partition.flushed, y - 3, y + HIGH + 3, `watermark: readers see up to ${partition.flushed}`),
  ];
}

function retired(partition, x, y) {
  const oldest = partition.segments[0]?.[0] ?? partition.first;
  if (oldest <= 0) return null;
  const says = `deleted by retention: everything before ${oldest}`;
  const place = { x: LEFT, y, width: Math.max(x(oldest) - LEFT, 0), height: HIGH };
  return svg("rect", { class: "eaten", ...place }, svg("title", {}, says));
}
