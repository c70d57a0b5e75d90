// §3.2 Algorithm 1, and what replaced it, on one time axis: a lane per consumer, a colour per partition, gaps = nobody reads.
import { colour, el, links, svg, table, time } from "/static/dom.js";

export const title = "Ownership";
export const uses = ["group"];
const LEFT = 190, HEIGHT = 360;

export function draw(view, state, paneWidth) {
  if (!view.lanes.length) return el("p", { class: "hint" }, "No group reads yet.");
  const partitions = [...new Set(view.lanes.flatMap((group) => group.partitions))].sort();
  const paint = new Map(partitions.map((name, i) => [name, colour(i)]));
  return el("div", {}, el("h2", {}, "Who reads what, over the last minutes"),
    el("p", { class: "hint" }, "A lane per consumer; each strip in it is a partition, in its own colour. Red hatching = nobody reads it: the price of a rebalance. Triangles on the axis are rebalances."),
    picture(view, paint, Math.max(paneWidth - LEFT - 12, 400)),
    el("div", { class: "columns" }, view.lanes.map((group) => now(group, paint))),
    rebalances(view), links(view, "rebalance"), links(view, "owners"), links(view, "modern"));
}

function picture(view, paint, width) {
  const [from, to] = view.window;
  const x = (t) => LEFT + (width * (Math.min(Math.max(t, from), to) - from)) / Math.max(to - from, 1);
  const rows = view.lanes.map((group) => group.members.slice(0, 30).map((member) => ({ member, names: [...new Set(member.spans.map((span) => span.partition))].sort() })));
  const strips = rows.flat().reduce((sum, { names }) => sum + Math.max(names.length, 3), 0);
  const strip = Math.min(9, Math.max(2, HEIGHT / Math.max(strips, 1)));
  let y = 4;
  const drawn = view.lanes.flatMap((group, g) => {
    const head = svg("text", { class: "strong", x: 0, y: y + 14 }, `${group.name}: ${group.kind === "modern" ? "the modern protocol" : "Algorithm 1"}`,
      group.n_partitions > group.partitions.length ? ` (${group.partitions.length} of ${group.n_partitions} partitions)` : "");
    y += 20;
    const found = [head, ...rows[g].map(({ member, names }) => {
      const height = Math.max(names.length, 3) * strip + 4, place = y;
      y += Math.max(height, 16) + 3;
      return svg("g", { class: member.here ? null : "left" }, svg("text", { x: 12, y: place + Math.min(height, 16) - 3 }, shorten(member.name), member.here ? "" : " (gone)", svg("title", {}, member.id)),
        svg("rect", { x: LEFT, y: place, width, height, fill: "none", class: "axis" }),
        member.spans.map((span) => svg("rect", { x: x(span.from), y: place + 2 + names.indexOf(span.partition) * strip, width: Math.max(x(span.to) - x(span.from), 1.5), height: Math.max(strip - 1, 1.5),
          fill: member.id === "nobody" ? "url(#nobody)" : paint.get(span.partition) }, svg("title", {}, `${span.partition} from ${time(span.from)} to ${time(span.to)}`))));
    })];
    y += 6;
    return found;
  });
  const marks = view.rebalances.filter((r) => r.t >= from).map((r) => svg("g", {}, svg("line", { class: "moment", x1: x(r.t), x2: x(r.t), y1: 4, y2: y }), svg("path", { class: "moment", d: `M${x(r.t)} ${y}l-4 7h8z` }, svg("title", {}, `${time(r.t)} ${r.consumer}: ${r.reason}`))));
  return el("div", { class: "scroll" }, svg("svg", { id: "lanes", width: LEFT + width + 10, height: y + 26, role: "img", "aria-label": "ownership over time; the tables below say who owns what now" },
    svg("defs", {}, svg("pattern", { id: "nobody", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 3, height: 5, fill: "#b3261e" }))), marks, drawn,
    [0, 0.25, 0.5, 0.75, 1].map((part) => svg("text", { class: "soft", x: LEFT + width * part, y: y + 20, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, time(from + (to - from) * part)))));
}

function now(group, paint) {
  return el("section", { class: "now" }, el("h3", {}, `${group.name} now`), table("", [["consumer"], ["partitions", 1], ["which"]], group.members.filter((member) => member.here && (member.id !== "nobody" || member.now.length)).map((member) =>
    [el("span", { title: member.id, class: member.id === "nobody" ? "bad" : null }, shorten(member.name)), member.now.length, which(member.now, paint)])));
}

// "page_views 0-0 0-1" with a chip of the colour before each.
function which(names, paint) {
  const topics = new Map();
  for (const name of names) { const [topic, partition] = name.split(" "); topics.set(topic, [...(topics.get(topic) ?? []), partition]); }
  return [...topics].map(([topic, partitions]) => el("div", { class: "which" }, `${topic} `, partitions.slice(0, 24).map((partition) => el("span", { class: "part" }, el("i", { class: "chip", style: `background:${paint.get(`${topic} ${partition}`)}` }), partition)), partitions.length > 24 ? ` … ${partitions.length} in all` : null));
}

const shorten = (id) => (id.length > 20 ? `${id.slice(0, 9)}…${id.slice(-9)}` : id);

function rebalances(view) {
  return el("section", {}, el("h3", {}, "Rebalances, newest first"), view.rebalances.length ? table("", [["when"], ["group"], ["who"], ["why"], ["took", 1], ["moved", 1], ["outcome"]],
    view.rebalances.map((r) => [time(r.t), r.group, shorten(r.consumer ?? ""), r.reason, `${Math.round(r.seconds * 1000).toLocaleString("en")} ms`, r.moved, r.outcome])) : el("p", { class: "hint" }, "None in the last minutes."));
}
