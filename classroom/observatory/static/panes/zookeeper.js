// §3.2: the four registries, live. Ephemeral nodes are italic with their session; a change rings a bell.
import { el, links, svg, time } from "/static/dom.js";

export const title = "ZooKeeper";
const SHOWN = 60;
const NOT_ALL = "Not all nodes are shown: the chosen group is read whole, the others as far as a look can afford.";
const NO_CHANGE = "Nothing came or went in the last minutes. Kill a consumer and look again.";

export function draw(view) {
  return el(
    "div",
    {},
    el("h2", {}, "The registries in ZooKeeper"),
    el(
      "p",
      { class: "hint" },
      "Italic = ephemeral: it vanishes with the session that made it. “new” and “gone”: in the last five seconds. ",
      bell(false),
      " = consumers watch this list; it rings when a child comes or goes, and they rebalance. ",
      "A consumer's value says what it reads: *1*page_views is one stream of every topic that matches.",
    ),
    view.tree_cut ? el("p", { class: "warn" }, NOT_ALL) : null,
    el(
      "div",
      { class: "columns" },
      el(
        "div",
        { class: "scroll tall", id: "tree", tabindex: 0, role: "region", "aria-label": "nodes" },
        list(nested(view.tree), ""),
      ),
      el("section", {}, el("h3", {}, "What changed, newest first"), changes(view.changes)),
    ),
    links(view, "registries"),
    links(view, "watches"),
  );
}

// The nodes inside each other, as their paths are.
function nested(nodes) {
  const root = { children: new Map() };
  for (const node of nodes) {
    let place = root;
    for (const part of node.path.split("/").filter(Boolean)) {
      if (!place.children.has(part)) place.children.set(part, { children: new Map() });
      place = place.children.get(part);
    }
    place.node = node;
  }
  return root;
}

function list(place, path) {
  const children = [...place.children];
  const items = children.slice(0, SHOWN).map(([name, child]) => item(name, child, `${path}/${name}`));
  const more = children.length - SHOWN;
  return el("ul", { class: "tree" }, items, more > 0 ? el("li", { class: "value" }, `… and ${more} more`) : null);
}

function item(name, child, path) {
  const line = words(name, child.node ?? {});
  if (!child.children.size) return el("li", {}, line);
  // Offsets change every second; folded away they leave room for what says more.
  const open = !/^\/consumers\/[^/]+\/(offsets|owners)\/[^/]+$/.test(path) || child.children.size <= 4;
  const summary = el("summary", {}, line, el("span", { class: "value" }, ` (${child.children.size})`));
  return el("li", {}, el("details", { id: `node-${path}`, open }, summary, list(child, path)));
}

function words(name, node) {
  const kind = [node.session ? "ephemeral" : "", node.change ?? ""].join(" ").trim();
  return [
    el("span", { class: kind || null }, name),
    node.change ? el("b", { class: node.change }, ` ${node.change}`) : null,
    node.watched ? [" ", bell(node.rings)] : null,
    node.value ? el("span", { class: "value" }, ` = ${node.value}`) : null,
    node.session ? el("span", { class: "value" }, `  session ${node.session}`) : null,
  ];
}

function changes(found) {
  if (!found.length) return el("p", { class: "hint" }, NO_CHANGE);
  const lines = found.map((change) =>
    el(
      "li",
      {},
      el("span", { class: "value" }, `${time(change.t)} `),
      el("b", { class: change.change }, change.change),
      ` ${change.path}`,
      change.session ? el("span", { class: "value" }, `  session ${change.session}`) : null,
    ),
  );
  return el("ol", { class: "log plain tall", id: "changes", tabindex: 0 }, lines);
}

// Drawn, not a letter: not every machine has a font with a bell.
function bell(rings) {
  const says = { role: "img", "aria-label": rings ? "watched, ringing" : "watched" };
  return svg(
    "svg",
    { class: rings ? "bell rings" : "bell", width: 14, height: 14, viewBox: "0 0 14 14", ...says },
    svg("path", { d: "M7 1a4 4 0 0 0-4 4v3L1.5 10.5h11L11 8V5a4 4 0 0 0-4-4zM5.5 11.5a1.5 1.5 0 0 0 3 0z" }),
  );
}
