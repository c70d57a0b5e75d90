// §3.2 Algorithm 1, and what replaced it, on one time axis: a lane per consumer, a strip per partition.
// Red is what nobody reads, whatever the registry says.
import { el, links, svg, table, time } from "/static/dom.js";
import { chip, hatch, paints } from "/static/paint.js";

export const title = "Ownership";
export const uses = ["group"];
const LEFT = 190;
const HEIGHT = 640;
const NOBODY = "nobody";

// Why an owner does not read: for its lane, for the strip, and for the table.
const STATES = {
  dead: { lane: "dead", says: "dead, still registered until its session ends" },
  paused: { lane: "paused", says: "stands still, still registered until its session ends" },
  stuck: { lane: "no progress", says: "stores no offset though messages wait" },
  "broker gone": { lane: "", says: "owned, but its broker is gone: nobody can read it" },
};

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
  );
}

function picture(view, paint, width) {
  const [from, to] = view.window;
  const x = (t) => LEFT + (width * (Math.min(Math.max(t, from), to) - from)) / Math.max(to - from, 1);
  const rows = view.lanes.map((group) => group.members.slice(0, 30).map(laneOf));
  const strips = rows.flat().reduce((sum, { names }) => sum + Math.max(names.length, 3), 0);
  // Wide enough for a name, unless that would make the picture longer than anybody scrolls.
  const strip = Math.min(11, Math.max(strips <= 150 ? 8 : 2, HEIGHT / Math.max(strips, 1)));
  let y = 4;
  const drawn = view.lanes.flatMap((group, g) => {
    const head = svg("text", { class: "strong", x: 0, y: y + 14 }, heading(group));
    y += 20;
    const found = rows[g].map((row) => {
      const lane = drawLane(row, { x, y, width, strip, paint });
      y += Math.max(laneHeight(row, strip), 16) + 3;
      return lane;
    });
    y += 6;
    return [head, ...found];
  });
  const marks = view.rebalances
    .filter((rebalance) => rebalance.t >= from)
    .map((rebalance) => mark(x(rebalance.t), y, `${time(rebalance.t)} ${rebalance.consumer}: ${rebalance.reason}`));
  const label = "ownership over time; the tables below say who owns what now";
  return el(
    "div",
    { class: "scroll" },
    svg(
      "svg",
      { id: "lanes", width: LEFT + width + 10, height: y + 26, role: "img", "aria-label": label },
      svg(
        "defs",
        {},
        hatch("nobody", "#b3261e", 3),
        hatch("unread", "#b3261e", 2),
        hatch("stuck", "#e69f00", 2),
        paint.defs(),
      ),
      marks,
      drawn,
      axis(from, to, width, y),
    ),
  );
}

function laneOf(member) {
  return { member, names: [...new Set(member.spans.map((span) => span.partition))].sort(byNumber) };
}

function heading(group) {
  const protocol = group.kind === "modern" ? "the modern protocol" : "Algorithm 1";
  const cut = group.n_partitions > group.partitions.length;
  const shown = cut ? ` (${group.partitions.length} of ${group.n_partitions} partitions)` : "";
  return `${group.name}: ${protocol}${shown}`;
}

const laneHeight = ({ names }, strip) => Math.max(names.length, 3) * strip + 4;

function drawLane({ member, names }, { x, y, width, strip, paint }) {
  const height = laneHeight({ names }, strip);
  const state = member.here ? (STATES[member.state]?.lane ?? "") : "gone";
  const name = svg(
    "text",
    { x: 12, y: y + Math.min(height, 16) - 3, class: member.state ? "bad" : null },
    shorten(member.name),
    state ? ` (${state})` : "",
    svg("title", {}, member.id),
  );
  const spans = member.spans.map((span) => {
    const place = { x: x(span.from), y: y + 2 + names.indexOf(span.partition) * strip };
    return drawSpan(span, member, { ...place, width: Math.max(x(span.to) - place.x, 1.5), strip, paint });
  });
  return svg(
    "g",
    { class: member.here ? null : "left" },
    name,
    svg("rect", { x: LEFT, y, width, height, fill: "none", class: "axis" }),
    spans,
    notes(member, names, { x, y, strip }),
  );
}

function drawSpan(span, member, { x, y, width, strip, paint }) {
  const says = STATES[span.state]?.says ?? (member.id === NOBODY ? "nobody owns it" : `read by ${member.name}`);
  const rect = svg(
    "rect",
    {
      x,
      y,
      width,
      height: Math.max(strip - 1, 1.5),
      fill: fillOf(span, member, paint),
      class: span.state ? `span ${span.state.replace(" ", "-")}` : "span",
    },
    svg("title", {}, `${span.partition} from ${time(span.from)} to ${time(span.to)}: ${says}`),
  );
  const label = span.partition.split(" ")[1];
  const fits = strip >= 8 && width > label.length * 6 + 8 && !span.state && member.id !== NOBODY;
  return fits ? [rect, svg("text", { class: "strip-name", x: x + 3, y: y + strip - 2.5 }, label)] : rect;
}

function fillOf(span, member, paint) {
  if (member.id === NOBODY) return "url(#nobody)";
  if (span.state === "stuck") return "url(#stuck)";
  return span.state ? "url(#unread)" : paint.fill(span.partition);
}

// The words on the hatching: once for each reason, where it was last seen, however many partitions are hit.
function notes(member, names, { x, y, strip }) {
  const told = new Map();
  for (const span of member.spans) {
    const before = told.get(span.state);
    if (span.state && (!before || span.to > before.to)) told.set(span.state, span);
  }
  return [...told.values()].map((span) => {
    const says = STATES[span.state].says;
    const width = says.length * 7.2;
    const line = y + 12 + names.indexOf(span.partition) * strip;
    const words = (place, anchor) => svg("text", { class: "note", x: place, y: line, "text-anchor": anchor }, says);
    // On the hatching if it is wide enough; else beside it, where there is room.
    if (x(span.to) - x(span.from) > width) return words(x(span.from) + 5, "start");
    return x(span.to) + width > x(Infinity) ? words(x(span.from) - 5, "end") : words(x(span.to) + 5, "start");
  });
}

function mark(x, y, says) {
  return svg(
    "g",
    {},
    svg("line", { class: "moment", x1: x, x2: x, y1: 4, y2: y }),
    svg("path", { class: "moment", d: `M${x} ${y}l-4 7h8z` }, svg("title", {}, says)),
  );
}

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
