// §3.1: the broker knows nothing of its readers; their places are in the offset registry (or, for modern groups, in a
// log).
import { ask, may } from "/static/act.js";
import { address, ago, bytes, count, el, links, svg, table } from "/static/dom.js";

export const title = "Groups";
export const uses = ["group"];

const CAPTION =
  "Lag in bytes is exact: both ends are byte positions. “Behind” is how long ago the log ended where the group is now.";

const MODERN = "A modern group keeps its offsets with its coordinator: any modern client's tool can move it.";
const MOVE_HINT = "start, end, an offset, +5 or -5 (messages), @2026-01-31T12:00 (this machine's time, by whole files)";

// Move a group: first the plan, then exactly that plan.
export function tools(view, state) {
  const chosen = view.groups.find((group) => group.name === view.chosen.group);
  if (!chosen || !may(view, "/api/plan")) return null;
  if (chosen.kind === "modern") {
    return el("p", { class: "hint" }, MODERN);
  }
  const to = el("input", { id: "move-to", size: 18, value: "start", "aria-describedby": "move-hint" });
  const result = el("div", { id: "move-plan", "aria-live": "polite" });
  const preview = async (event) => {
    event.preventDefault();
    result.replaceChildren("…");
    const plan = await ask(state.view, "/api/plan", { group: chosen.name, to: to.value });
    result.replaceChildren(planned(plan, result, state));
  };
  return el(
    "form",
    { class: "strike", onsubmit: preview },
    el("label", {}, el("strong", {}, `Move ${chosen.name} to `), to),
    " ",
    el("button", { id: "move-preview" }, "preview"),
    el("p", { id: "move-hint", class: "hint" }, MOVE_HINT),
    result,
  );
}

function planned(plan, result, state) {
  if (plan.error) return el("p", { class: "bad" }, plan.error);
  const apply = async () => {
    const done = await ask(state.view, "/api/move", { plan: plan.plan });
    result.replaceChildren(el("p", { id: "moved", class: done.error ? "bad" : "good" }, done.error ?? done.said));
  };
  const columns = [["topic"], ["partition"], ["from", 1], ["to", 1], ["by", 1], ["because"]];
  const rows = plan.moves.map((move) => [
    move.topic,
    move.partition,
    count(move.old),
    count(move.new),
    move.old === null ? "–" : bytes(move.new - move.old),
    move.why,
  ]);
  const says = `${plan.members.length} members are reading and would store their own offsets over it; stop them first.`;
  const busy = plan.members.length ? el("p", { class: "warn" }, says) : null;
  return el(
    "div",
    {},
    table("Nothing has been changed yet", columns, rows),
    busy,
    el("button", { type: "button", id: "move-apply", class: "danger", onclick: apply }, "move it"),
  );
}

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
    p.in_records ? `${count(p.lag)} records` : bytes(p.lag),
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
