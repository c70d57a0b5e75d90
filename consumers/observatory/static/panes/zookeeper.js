// §3.2: the four registries, live. Ephemeral nodes are italic with their session; a change rings a bell.
import { el, links } from "/static/dom.js";

export const title = "ZooKeeper";

export function draw(view) {
  const root = { children: new Map() };
  for (const node of view.tree) {
    let place = root;
    for (const part of node.path.split("/").filter(Boolean)) {
      if (!place.children.has(part)) place.children.set(part, { children: new Map() });
      place = place.children.get(part);
    }
    place.node = node;
  }
  return el("div", {}, el("h2", {}, "The registries in ZooKeeper"),
    el("p", { class: "hint" }, "Italic = ephemeral: it vanishes with the session that made it. Green = new since the last look, struck out = just gone. 🔔 = a consumer watches this list and will rebalance."),
    view.tree_cut ? el("p", { class: "warn" }, `Only the first ${view.tree.length} nodes are shown.`) : null,
    list(root), links(view, "registries"), links(view, "watches"));
}

function list(place) {
  return el("ul", { class: "tree" }, [...place.children].map(([name, child]) => {
    const node = child.node ?? {};
    const kind = [node.session ? "ephemeral" : "", node.change ?? "", node.watched ? "bell" : ""].join(" ").trim();
    return el("li", {}, el("span", { class: kind || null }, name), node.value ? el("span", { class: "value" }, ` = ${node.value}`) : null,
      node.session ? el("span", { class: "value" }, `  (session ${node.session})`) : null, child.children.size ? list(child) : null);
  }));
}
