// §3.1: the broker knows nothing of its readers; their places are in the offset registry (or, for modern groups, in a log).
import { ago, bytes, count, el, links, svg, table } from "/static/dom.js";

export const title = "Groups";

export function draw(view) {
  const group = view.group;
  return el("div", {}, el("h2", {}, "Groups"),
    table("All groups", [["group"], ["protocol"], ["members", 1], ["partitions", 1], ["lag", 1], ["state"]],
      view.groups.map((g) => [g.name, g.kind === "modern" ? "modern" : "Algorithm 1", g.members, g.partitions, bytes(g.lag), g.state])),
    group ? [el("h2", {}, group.name), trend(group),
      table("Lag in bytes is exact: both ends are byte positions. Seconds come from how fast the log grew past the stored offset.",
        [["topic"], ["partition"], ["owner"], ["stored offset", 1], ["flushed end", 1], ["lag", 1], ["behind", 1]],
        group.partitions.map((p) => [p.topic, p.partition, p.owner ?? el("span", { class: "warn" }, "nobody"), count(p.offset), count(p.end), bytes(p.lag), p.behind_ms === null ? "–" : ago(p.behind_ms)]))] : null,
    links(view, "offsets"), links(view, "delivery"));
}

function trend(group) {
  if (group.trend.length < 2) return null;
  const [first, last] = [group.trend[0][0], group.trend.at(-1)[0]];
  const most = Math.max(1, ...group.trend.map(([, lag]) => lag));
  const points = group.trend.map(([t, lag]) => `${(600 * (t - first)) / Math.max(last - first, 1)},${60 - (55 * lag) / most}`).join(" ");
  return el("figure", {}, svg("svg", { width: 610, height: 66, role: "img", "aria-label": "lag over time" }, svg("polyline", { points, fill: "none", stroke: "#0072b2", "stroke-width": 2 })),
    el("figcaption", { class: "hint" }, `lag over the last ${ago(last - first)}; the top is ${bytes(most)}`));
}
