// Break something: each card says beforehand what the paper promises, and afterwards what was seen.
import { strike } from "/static/act.js";
import { el, links } from "/static/dom.js";
import { verdict } from "/static/strike.js";

export const title = "Faults";

const OFF =
  "Off. Start the page with --allow-faults (the demo does) to kill, pause, expire and corrupt things from here.";
const NOTHING_YET = "Nothing was broken yet. Choose below, then watch here and in Ownership.";

export function draw(view, state) {
  if (!view.faults) {
    return el("div", {}, el("h2", {}, "Faults"), el("p", { class: "hint" }, OFF), links(view, "delivery"));
  }
  return el(
    "div",
    {},
    el("h2", {}, "What was seen"),
    el("ol", { class: "log plain", id: "seen", tabindex: 0, "aria-live": "polite" }, seen(view)),
    el("h2", {}, "Break something"),
    el("div", { class: "cards", id: "cards" }, view.faults.kinds.map((kind) => card(kind, state))),
    links(view, "delivery"),
    links(view, "rebalance"),
  );
}

export function update(pane, view) {
  pane.querySelector("#seen")?.replaceChildren(...seen(view));
  for (const kind of view.faults?.kinds ?? []) {
    const select = pane.querySelector(`#target-${kind.name}`);
    const wanted = kind.targets.join("\n");
    pane.querySelector(`#do-${kind.name}`)?.toggleAttribute("disabled", !kind.targets.length);
    if (select && select.dataset.targets !== wanted && document.activeElement !== select) {
      const chosen = select.value;
      select.replaceChildren(...kind.targets.map((target) => el("option", {}, target)));
      if (kind.targets.includes(chosen)) select.value = chosen;
      select.dataset.targets = wanted;
    }
  }
}

function seen(view) {
  const found = view.faults?.seen ?? [];
  if (!found.length) return [el("li", { class: "hint" }, NOTHING_YET)];
  return found.map((one) => el("li", {}, verdict(one)));
}

function card(kind, state) {
  const options = kind.targets.map((name) => el("option", {}, name));
  const label = `${kind.title}: which`;
  const attributes = { id: `target-${kind.name}`, "data-targets": kind.targets.join("\n"), "aria-label": label };
  const target = el("select", attributes, options);
  const said = el("span", { role: "status" });
  const go = async () => {
    said.textContent = " …";
    said.textContent = ` ${await strike(state.view, kind.name, target.value)}`;
  };
  const button = { class: "danger", type: "button", id: `do-${kind.name}`, disabled: !kind.targets.length };
  return el(
    "section",
    { class: "card" },
    el("h3", {}, kind.title),
    el("p", {}, el("strong", {}, "The paper: "), kind.promise),
    target,
    " ",
    el("button", { ...button, onclick: go }, kind.verb),
    said,
  );
}
