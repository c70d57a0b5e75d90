// §3.1: the broker knows nothing of its readers; their places are in the offset registry (or, for modern groups, in a
// log).
import { address, ago, bytes, count, el, links, svg, table } from "/static/dom.js";

export const title = "Groups";
export const uses = ["group"];

const CAPTION =
  "Lag in bytes is exact: both ends are byte positions. “Behind” is how long ago the log ended where the group is now.";

export function draw(view) {
  const group = view.group;
  return el(
    "div",
    {},
    el("h2", {}, "Groups"),
    groups(view.groups, group?.name),
    group ? [el("h2", {}, group.name), trend(group), places(group)] : null,
    links(view, "offsets"),
    links(view, "delivery"),
  );
}

function groups(found, chosen) {
  const columns = [["group"], ["protocol"], ["members", 1], ["partitions", 1], ["lag", 1], ["state"]];
  const link = ({ name }) => {
    const current = name === chosen ? "true" : null;
    return el("a", { id: `g-${name}`, href: address("groups", { group: name }), "aria-current": current }, name);
  };
  const rows = found.map((g) => [
    link(g),
    g.kind === "modern" ? "modern" : "Algorithm 1",
    g.members,
    count(g.partitions),
    bytes(g.lag),
    g.state,
  ]);
  return table("", columns, rows);
}

function places(group) {
  const columns = [
    ["topic"],
    ["partition"],
    ["owner"],
    ["stored offset", 1],
    ["flushed end", 1],
    ["lag", 1],
    ["behind", 1],
  ];
  const rows = group.partitions.map((p) => [
    p.topic,
    p.partition,
    owner(p),
    count(p.offset),
    count(p.end),
    bytes(p.lag),
    behind(p),
  ]);
  return table(CAPTION, columns, rows);
}

// Who is registered as the owner, and whether that one reads.
function owner(p) {
  if (!p.owner) return el("span", { class: "warn" }, "nobody");
  const state = p.state ? el("strong", { class: "bad" }, ` (${p.state}: nobody reads it)`) : null;
  return el("span", { title: p.owner }, p.name, state);
}

function behind(p) {
  if (p.lag === null) return "–";
  return p.behind_ms === null ? "long" : ago(p.behind_ms);
}

function trend(group) {
  if (group.trend.length < 2) return null;
  const first = group.trend[0][0];
  const last = group.trend.at(-1)[0];
  const lags = group.trend.map(([, lag]) => lag);
  const most = Math.max(1, ...lags);
  const x = (t) => (600 * (t - first)) / Math.max(last - first, 1);
  const points = group.trend.map(([t, lag]) => `${x(t)},${60 - (55 * lag) / most}`).join(" ");
  const now = `now ${bytes(lags.at(-1))}, at most ${bytes(most)}`;
  return el(
    "figure",
    {},
    svg(
      "svg",
      { width: 610, height: 66, viewBox: "0 0 610 66", role: "img", "aria-label": "lag over time" },
      svg("line", { class: "axis", x1: 0, x2: 610, y1: 60, y2: 60 }),
      svg("polyline", { points, fill: "none", stroke: "#0072b2", "stroke-width": 2 }),
    ),
    el("figcaption", { class: "hint" }, `Lag over the last ${ago(last - first)}: ${direction(lags)}, ${now}.`),
  );
}

// The last quarter against the first: a word for those who do not see the line.
function direction(lags) {
  const part = Math.max(1, Math.floor(lags.length / 4));
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const before = mean(lags.slice(0, part));
  const after = mean(lags.slice(-part));
  if (after > before * 1.5 + 1024) return "growing";
  return before > after * 1.5 + 1024 ? "shrinking" : "steady";
}
