// §3.2 Algorithm 1, and what replaced it, on one time axis: a lane per consumer, a strip per partition.
// Red is what nobody reads, whatever the registry says.
import { address, el, links, svg, table, time } from "/static/dom.js";
import { chip, hatch, paints } from "/static/paint.js";
import { strikeBar, updateStrikeBar } from "/static/strike.js";

export const title = "Ownership";
export const uses = ["group"];
const LEFT = 190;
const HEIGHT = 640;
const BRIEF = 2.5;
const NOBODY = "nobody";

// Why an owner does not read: for its lane, for the strip, and for the table.
const STATES = {
  dead: { lane: "dead", says: "dead, still registered until its session ends" },
  paused: { lane: "paused", says: "stands still, still registered until its session ends" },
  stuck: { lane: "no progress", says: "stores no offset though messages wait" },
  "broker gone": { lane: "", says: "owned, but its broker is gone: nobody can read it" },
};

// Faults beside their effect, where the page may break things.
export const tools = (view, state) => (view.faults ? strikeBar(view, state) : null);

export const updateTools = updateStrikeBar;

export function draw(view, state, paneWidth) {
  if (!view.lanes.length) return el("p", { class: "hint" }, "No group reads yet.");
  const paint = paints([...new Set(view.lanes.flatMap((group) => group.partitions))]);
  return el(
    "div",
    {},
    el("h2", {}, "Who reads what, over the last minutes"),
    el("p", { class: "hint" }, "A lane per consumer; each strip is a partition with its name, colour and pattern."),
    legend(),
    picture(view, paint, Math.max(paneWidth - LEFT - 12, 400)),
    el("div", { class: "columns" }, view.lanes.map((group) => now(group, paint))),
    rebalances(view),
    links(view, "rebalance"),
    links(view, "owners"),
    links(view, "modern"),
  );
}

function legend() {
  const size = { width: 26, height: 12 };
  const swatch = (fill) => svg("svg", { class: "swatch", ...size }, svg("rect", { ...size, fill }));
  const triangle = svg("path", { class: "moment", d: "M13 2l-4 8h8z" });
  return el(
    "p",
    { class: "legend", id: "lanes-legend" },
    el("span", {}, swatch("url(#nobody)"), " nobody owns it: the price of a rebalance"),
    el("span", {}, swatch("url(#unread)"), " owned, not read: owner dead or paused, or broker gone"),
    el("span", {}, swatch("url(#stuck)"), " owned, messages wait, no offset stored for 15 s"),
    el("span", {}, svg("svg", { class: "swatch", ...size }, triangle), " a rebalance"),
    el("span", {}, svg("svg", { class: "swatch", ...size }, cross(13, 6)), " a fault; click a mark to go there"),
  );
}

function picture(view, paint, width) {
  const [from, to] = view.window;
  const x = (t) => LEFT + (width * (Math.min(Math.max(t, from), to) - from)) / Math.max(to - from, 1);
  const lanes = view.lanes.map((group) => group.members.slice(0, 30).map((member) => laneOf(member, to - from)));
  const strips = lanes.flat().reduce((sum, { names }) => sum + Math.max(names.length, 2), 0);
  // Wide enough for a name, unless that would make the picture longer than anybody scrolls.
  const strip = Math.min(14, Math.max(strips <= 100 ? 12 : strips <= 150 ? 9 : 2, HEIGHT / Math.max(strips, 1)));
  let y = 18;
  const drawn = view.lanes.flatMap((group, g) => {
    const head = svg("text", { class: "strong", x: 0, y: y + 14 }, heading(group));
    y += 20;
    const topics = new Set(group.partitions.map((partition) => partition.split(" ")[0]));
    const found = lanes[g].map((lane) => {
      const drawnLane = drawLane(lane, { x, y, width, strip, paint, named: topics.size > 1 });
      y += Math.max(laneHeight(lane, strip), 16) + 3;
      return drawnLane;
    });
    y += 6;
    return [head, ...found];
  });
  const label = "ownership over time; the tables below say who owns what now";
  return el(
    "div",
    { class: "scroll", id: "lanes-scroll", tabindex: 0, role: "region", "aria-label": "lanes" },
    svg(
      "svg",
      { id: "lanes", width: LEFT + width + 10, height: y + 26, role: "group", "aria-label": label },
      svg(
        "defs",
        {},
        hatch("nobody", "#b3261e", 3),
        hatch("unread", "#b3261e", 2),
        hatch("stuck", "#e69f00", 2),
        paint.defs(),
      ),
      drawn,
      marksOf(view).map((mark) => drawMark(mark, x(mark.t), y, x(to))),
      axis(from, to, width, y),
    ),
  );
}

// Strips that a consumer owns now or owned for long come first; those it had for a moment are thin, below them.
function laneOf(member, window) {
  const owned = new Map();
  for (const span of member.spans) {
    owned.set(span.partition, (owned.get(span.partition) ?? 0) + span.to - span.from);
  }
  const isBrief = (name) => !member.now.includes(name) && owned.get(name) < window * 0.04;
  const names = [...owned.keys()].sort(byNumber);
  return { member, names: names.filter((name) => !isBrief(name)), brief: names.filter(isBrief) };
}

// Where a partition's strip lies in its lane, and how high it is.
function rowOf({ names, brief }, partition, strip) {
  const place = names.indexOf(partition);
  if (place >= 0) return { top: 2 + place * strip, high: Math.max(strip - 1, 1.5) };
  return { top: 2 + names.length * strip + brief.indexOf(partition) * BRIEF, high: 1.5 };
}

// The marks of the groups that are shown, and every fault and broker, inside the window.
function marksOf(view) {
  const [from, to] = view.window;
  const shown = new Set(view.lanes.map((group) => group.name));
  return (view.marks ?? []).filter(
    (mark) => mark.t >= from && mark.t <= to && (mark.kind !== "rebalance" || shown.has(mark.group)),
  );
}

function heading(group) {
  const protocol = group.kind === "modern" ? "the modern protocol" : "Algorithm 1";
  const cut = group.n_partitions > group.partitions.length;
  const shown = cut ? ` (${group.partitions.length} of ${group.n_partitions} partitions)` : "";
  return `${group.name}: ${protocol}${shown}`;
}

const laneHeight = ({ names, brief }, strip) => Math.max(names.length * strip + brief.length * BRIEF, 2 * strip) + 4;

function drawLane(lane, { x, y, width, strip, paint, named }) {
  const { member } = lane;
  const height = laneHeight(lane, strip);
  const state = member.here ? (STATES[member.state]?.lane ?? "") : "gone";
  const name = svg(
    "text",
    { x: 12, y: y + Math.min(height, 16) - 3, class: member.state ? "bad" : null },
    shorten(member.name),
    state ? ` (${state})` : "",
    svg("title", {}, member.id),
  );
  const spans = member.spans.map((span) => {
    const row = rowOf(lane, span.partition, strip);
    const place = { x: x(span.from), y: y + row.top, high: row.high };
    return drawSpan(span, member, { ...place, width: Math.max(x(span.to) - place.x, 1.5), paint, named });
  });
  return svg(
    "g",
    { class: member.here ? null : "left" },
    name,
    svg("rect", { x: LEFT, y, width, height, fill: "none", class: "axis" }),
    spans,
    notes(lane, { x, y, strip }),
  );
}

function drawSpan(span, member, { x, y, width, high, paint, named }) {
  const says = STATES[span.state]?.says ?? (member.id === NOBODY ? "nobody owns it" : `read by ${member.name}`);
  const rect = svg(
    "rect",
    {
      x,
      y,
      width,
      height: high,
      fill: fillOf(span, member, paint),
      class: span.state ? `span ${span.state.replace(" ", "-")}` : "span",
    },
    svg("title", {}, `${span.partition} from ${time(span.from)} to ${time(span.to)}: ${says}`),
  );
  const short = span.partition.split(" ")[1];
  const long = named && width > span.partition.length * 6 + 8;
  const label = long ? span.partition : short;
  const fits = high >= 8 && width > short.length * 6 + 8 && !span.state && member.id !== NOBODY;
  return fits ? [rect, svg("text", { class: "strip-name", x: x + 3, y: y + high - 1.5 }, label)] : rect;
}

function fillOf(span, member, paint) {
  if (member.id === NOBODY) return "url(#nobody)";
  if (span.state === "stuck") return "url(#stuck)";
  return span.state ? "url(#unread)" : paint.fill(span.partition);
}

// The words on the hatching: once for each reason, where it was last seen, however many partitions are hit.
function notes(lane, { x, y, strip }) {
  const told = new Map();
  for (const span of lane.member.spans) {
    const before = told.get(span.state);
    if (span.state && (!before || span.to > before.to)) told.set(span.state, span);
  }
  return [...told.values()].map((span) => {
    const says = STATES[span.state].says;
    const width = says.length * 7.2;
    const line = y + 10 + rowOf(lane, span.partition, strip).top;
    const words = (place, anchor) => svg("text", { class: "note", x: place, y: line, "text-anchor": anchor }, says);
    // On the hatching if it is wide enough; else beside it, where there is room.
    if (x(span.to) - x(span.from) > width) return words(x(span.from) + 5, "start");
    return x(span.to) + width > x(Infinity) ? words(x(span.from) - 5, "end") : words(x(span.to) + 5, "start");
  });
}

// A line through the lanes and a sign at their foot: a way to that moment.
function drawMark(mark, x, y, right) {
  const fault = mark.kind !== "rebalance";
  const says = `${time(mark.t)} ${mark.says}`;
  const sign = fault ? cross(x, y + 4) : svg("path", { class: "moment", d: `M${x} ${y}l-4 7h8z` });
  return svg(
    "a",
    { href: address("ownership", { at: mark.t }), class: `moment-link ${mark.kind}`, "aria-label": `go to ${says}` },
    svg("title", {}, says),
    svg("line", { class: "moment", x1: x, x2: x, y1: 14, y2: y }),
    svg("rect", { x: x - 7, y: y - 3, width: 14, height: 14, fill: "transparent" }),
    sign,
    fault ? markName(mark.says, x, right) : null,
  );
}

// To the right of its line, or to the left where the picture ends.
function markName(says, x, right) {
  const fits = x + says.length * 7 < right;
  const place = fits ? { x: x + 4, "text-anchor": "start" } : { x: x - 4, "text-anchor": "end" };
  return svg("text", { class: "mark-name", y: 11, ...place }, says);
}

const cross = (x, y) => svg("path", { class: "moment cross", d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8` });

function axis(from, to, width, y) {
  const anchors = { 0: "start", 1: "end" };
  return [0, 0.25, 0.5, 0.75, 1].map((part) =>
    svg(
      "text",
      { class: "soft", x: LEFT + width * part, y: y + 20, "text-anchor": anchors[part] ?? "middle" },
      time(from + (to - from) * part),
    ),
  );
}

function now(group, paint) {
  const shown = group.members.filter((member) => member.here && (member.id !== NOBODY || member.now.length));
  const rows = shown.map((member) => [
    el("span", { title: member.id, class: member.id === NOBODY ? "bad" : null }, shorten(member.name)),
    member.now.length,
    [member.state ? el("strong", { class: "bad" }, STATES[member.state].says) : null, which(member.now, paint)],
  ]);
  return el(
    "section",
    { class: "now" },
    el("h3", {}, `${group.name} now`),
    table("", [["consumer"], ["partitions", 1], ["which"]], rows),
  );
}

// "page_views 0-0 0-1" with a chip of the colour and pattern before each.
function which(names, paint) {
  const topics = new Map();
  for (const name of names) {
    const [topic, partition] = name.split(" ");
    topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  }
  return [...topics].map(([topic, partitions]) =>
    el(
      "div",
      { class: "which" },
      `${topic} `,
      partitions.slice(0, 24).map((name) => el("span", { class: "part" }, chip(paint.fill(`${topic} ${name}`)), name)),
      partitions.length > 24 ? ` … ${partitions.length} in all` : null,
    ),
  );
}

const shorten = (id) => (id.length > 20 ? `${id.slice(0, 9)}…${id.slice(-9)}` : id);

const byNumber = (a, b) => a.localeCompare(b, "en", { numeric: true });

function rebalances(view) {
  const columns = [["when"], ["group"], ["who"], ["why"], ["took", 1], ["moved", 1], ["outcome"]];
  const rows = view.rebalances.map((r) => [
    time(r.t),
    r.group,
    shorten(r.consumer ?? ""),
    r.reason,
    `${Math.round(r.seconds * 1000).toLocaleString("en")} ms`,
    r.moved,
    r.outcome,
  ]);
  return el(
    "section",
    {},
    el("h3", {}, "Rebalances, newest first"),
    rows.length ? table("", columns, rows) : el("p", { class: "hint" }, "None in the last minutes."),
  );
}
