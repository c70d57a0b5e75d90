// §3.2 Algorithm 1, and what replaced it, on one time axis: a lane per consumer, a colour per partition, gaps = nobody reads.
import { colour, el, links, svg, table, time } from "/static/dom.js";

export const title = "Ownership";
const LEFT = 240, WIDTH = 800, LANE = 26;

export function draw(view) {
  if (!view.lanes.length) return el("p", { class: "hint" }, "No group reads yet.");
  return el("div", {}, el("h2", {}, "Who reads what, over the last minutes"),
    el("p", { class: "hint" }, "One lane per consumer; each strip in it is a partition. The lane “nobody” shows partitions without an owner: the price of a rebalance."),
    view.lanes.map((group) => lanes(group, view)), rebalances(view), links(view, "rebalance"), links(view, "owners"), links(view, "modern"));
}

function lanes(group, view) {
  const from = view.window[0], to = view.window[1];
  const x = (t) => LEFT + (WIDTH * (Math.min(Math.max(t, from), to) - from)) / Math.max(to - from, 1);
  const members = group.members.slice(0, 40);
  let y = 18;
  const drawn = members.map((member) => {
    const partitions = [...new Set(member.spans.map((span) => span.partition))].sort();
    const height = Math.max(LANE, partitions.length * 9 + 4);
    const place = y;
    y += height + 4;
    return svg("g", {}, svg("text", { x: 0, y: place + 15 }, shorten(member.id), svg("title", {}, member.id)),
      svg("rect", { x: LEFT, y: place, width: WIDTH, height, fill: "none", class: "axis" }),
      member.spans.map((span) => {
        const row = partitions.indexOf(span.partition);
        return svg("rect", { x: x(span.from), y: place + 2 + row * 9, width: Math.max(x(span.to) - x(span.from), 1), height: 8, fill: member.id === "nobody" ? "#b3261e" : colour(group.partitions.indexOf(span.partition)) },
          svg("title", {}, `${span.partition} from ${time(span.from)} to ${time(span.to)}`));
      }));
  });
  return el("section", {}, el("h3", {}, `${group.name} — ${group.kind === "modern" ? "the modern protocol" : "Algorithm 1"}`),
    el("div", { class: "scroll" }, svg("svg", { width: LEFT + WIDTH + 10, height: y + 20, role: "img", "aria-label": `ownership lanes of ${group.name}` }, drawn,
      [0, 0.25, 0.5, 0.75, 1].map((part) => svg("text", { class: "soft", x: LEFT + WIDTH * part, y: y + 12, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, time(from + (to - from) * part))))),
    table("Now", [["consumer"], ["partitions"]], members.map((member) => [member.id, member.now.join(", ") || "none"])));
}

const shorten = (id) => (id.length > 30 ? `${id.slice(0, 14)}…${id.slice(-14)}` : id);

function rebalances(view) {
  if (!view.rebalances.length) return null;
  return table("Rebalances, newest first", [["when"], ["group"], ["consumer"], ["why"], ["took", 1], ["moved", 1], ["outcome"]],
    view.rebalances.map((r) => [time(r.t), r.group, shorten(r.consumer ?? ""), r.reason, r.seconds === null ? "–" : `${(r.seconds * 1000).toFixed(0)} ms`, r.moved, r.outcome]));
}
