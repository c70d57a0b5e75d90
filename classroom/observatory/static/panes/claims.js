// The paper on trial: a card for each sentence with its last verdict; "run again" draws the plot while it is measured.
import { ask, may } from "/static/act.js";
import { el } from "/static/dom.js";
import { plot } from "/static/plot.js";

export const title = "Claims";

const RUN = "/api/claim";
const HINT =
  "Sentences of the paper, each with an experiment, a threshold written down before, and the last verdict. " +
  "“Run again” needs --allow-faults: experiments start and kill brokers of their own, never those of this cluster.";
const KINDS = {
  holds: "good",
  "holds with a footnote": "warn",
  "does not hold": "bad",
  "could not tell here": "hint",
};

export function draw(view, state) {
  if (!view.claims) return el("div", {}, el("h2", {}, title), el("p", { class: "hint" }, "No claims in a recording."));
  return el(
    "div",
    {},
    el("h2", {}, "The paper on trial"),
    el("p", { class: "hint" }, HINT),
    el("p", { id: "claims-sum" }, sum(view.claims.cards)),
    el("div", { class: "cards", id: "claims" }, view.claims.cards.map((card) => draft(view, state, card))),
  );
}

// Cards stay where they are while one looks: only what changed in them is drawn again.
export function update(pane, view, state) {
  if (!view.claims || !pane.querySelector("#claims")) return;
  pane.querySelector("#claims-sum").textContent = sum(view.claims.cards);
  for (const card of view.claims.cards) {
    const known = pane.querySelector(`#claim-${card.number}`);
    const mark = stamp(view, card);
    if (known && known.dataset.stamp !== mark) known.replaceWith(draft(view, state, card));
  }
}

const running = (view, card) => (view.claims.running?.number === card.number ? view.claims.running : null);

const stamp = (view, card) => {
  const run = running(view, card);
  const busy = view.claims.running && !view.claims.running.done;
  return [card.verdict, card.date, run?.points.length, run?.said, busy].join("|");
};

function sum(cards) {
  const counts = Object.keys(KINDS).map((kind) => [kind, cards.filter((card) => card.verdict === kind).length]);
  const told = counts.filter(([, n]) => n).map(([kind, n]) => `${n} ${kind}`);
  const left = cards.filter((card) => !card.verdict).length;
  return [...told, left ? `${left} not run yet` : null].filter(Boolean).join(", ");
}

function draft(view, state, card) {
  const run = running(view, card);
  const verdict = el("strong", { class: KINDS[card.verdict] ?? "hint" }, card.verdict ?? "not run yet");
  return el(
    "section",
    { class: "card", id: `claim-${card.number}`, "data-stamp": stamp(view, card) },
    el("h3", {}, `${card.number} ${card.title}`),
    el("blockquote", {}, card.sentence, ` (§${card.section})`),
    el("p", {}, verdict, card.figure ? `: ${card.figure}` : null),
    card.footnote ? el("p", { class: "hint" }, card.footnote) : null,
    el("p", { class: "hint" }, `Threshold: ${card.threshold}.`),
    run ? el("div", { class: "plot" }, run.plot ? plot({ ...run.plot, points: run.points }) : null) : null,
    again(view, state, card, run),
  );
}

function again(view, state, card, run) {
  const place = el("div", { class: "plot" });
  const said = el("span", { role: "status" }, run ? ` ${run.said}` : null);
  const busy = view.claims.running && !view.claims.running.done;
  const start = async () => {
    const answer = await ask(state.view, RUN, { number: card.number });
    said.textContent = ` ${answer.said ?? answer.error}`;
  };
  const look = async () => {
    const answer = await fetch(`/api/claim?number=${card.number}`);
    const found = await answer.json();
    place.replaceChildren(answer.ok ? plot(found.plot) : found.error);
  };
  const attributes = { type: "button", id: `run-${card.number}`, disabled: busy, onclick: start };
  return [
    may(view, RUN) ? el("button", attributes, "run again") : null,
    " ",
    card.verdict && !run ? el("button", { type: "button", id: `plot-${card.number}`, onclick: look }, "plot") : null,
    card.date ? el("span", { class: "hint" }, ` ${card.date}, ${card.scale}, ${card.seconds} s`) : null,
    said,
    place,
  ];
}
