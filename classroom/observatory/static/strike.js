// Break something beside its effect: one row of choices above the picture, and the verdict of the last fault.
import { strike } from "/static/act.js";
import { address, el, time } from "/static/dom.js";

// The faults one sees the effect of on this pane.
const kindsOf = (view, pane) =>
  (view.faults?.kinds ?? []).filter((kind) => kind.beside === pane || kind.name === "start");

const TARGETS = { segments: /^broker-/, ownership: /^(?!broker-)/ };

function targetsOf(kind, pane) {
  return kind.targets.filter((target) => (TARGETS[pane] ?? /./).test(target));
}

export function strikeBar(view, state) {
  const what = el("select", { id: "strike-what", "aria-label": "what to break" });
  const which = el("select", { id: "strike-which", "aria-label": "which one" });
  const said = el("span", { id: "strike-said", role: "status" });
  const go = async () => {
    said.textContent = "…";
    said.textContent = await strike(state.view, what.value, which.value);
  };
  what.addEventListener("change", () => fillTargets(state.view, state.pane, what, which));
  const bar = el(
    "form",
    {
      class: "strike",
      id: "strike",
      onsubmit: (event) => {
        event.preventDefault();
        go();
      },
    },
    el("strong", {}, "Break something: "),
    what,
    " ",
    which,
    " ",
    el("button", { class: "danger", id: "strike-go" }, "do it"),
    " ",
    said,
    el("p", { id: "strike-promise", class: "hint" }),
    el("p", { id: "strike-seen", "aria-live": "polite" }),
  );
  updateStrikeBar(bar, view, state);
  return bar;
}

export function updateStrikeBar(bar, view, state) {
  const what = bar.querySelector("#strike-what");
  const kinds = kindsOf(view, state.pane);
  choices(what, kinds.map((kind) => [kind.name, kind.title]));
  fillTargets(view, state.pane, what, bar.querySelector("#strike-which"), bar);
  bar.querySelector("#strike-seen").replaceChildren(...lastVerdict(view));
}

function fillTargets(view, pane, what, which, bar = what.form) {
  const kind = kindsOf(view, pane).find((one) => one.name === what.value);
  const targets = kind ? targetsOf(kind, pane) : [];
  choices(which, targets.map((name) => [name, name]));
  bar.querySelector("#strike-go").toggleAttribute("disabled", !targets.length);
  bar.querySelector("#strike-promise").textContent = kind ? `The paper: ${kind.promise}` : "";
}

// New choices only if they are other than before, and not while somebody has the list open.
function choices(select, wanted) {
  const names = wanted.map(([value]) => value).join("\n");
  if (select.dataset.names === names || document.activeElement === select) return;
  const chosen = select.value;
  select.replaceChildren(...wanted.map(([value, says]) => el("option", { value }, says)));
  if (wanted.some(([value]) => value === chosen)) select.value = chosen;
  select.dataset.names = names;
}

function lastVerdict(view) {
  const [last] = view.faults?.seen ?? [];
  return last ? verdict(last) : [];
}

// One line on a fault: when (a way back to that moment), what, and what came of it.
export function verdict(one) {
  const promised = one.verdict.startsWith("as promised") ? "good" : null;
  const there = one.link ? [" ", el("a", { href: address("browse", one.link), class: "there" }, "see the byte")] : [];
  return [
    el("a", { href: address("ownership", { at: one.t }), title: "go to that moment" }, time(one.t)),
    ` ${one.title}, ${one.target}: `,
    el("strong", { class: one.final ? promised : "warn" }, one.verdict),
    ...there,
  ];
}
