// The strip of time at the foot of the page: where one is, and what happened when. Each mark is a way to its moment.
import { el, time } from "/static/dom.js";

const APART = 24;
const KINDS = { fault: "✕", broker: "■", rebalance: "▲" };
const ORDER = ["fault", "broker", "rebalance"];

export function updateStrip(view, at) {
  const strip = document.getElementById("when");
  strip.min = view.first;
  strip.max = view.last;
  strip.step = 100;
  strip.value = at ?? view.last;
  strip.setAttribute("aria-valuetext", time(at ?? view.last));
  drawMarks(view, strip);
}

// What lies closer together than a finger is wide becomes one mark.
function drawMarks(view, strip) {
  const place = document.getElementById("marks");
  const width = strip.clientWidth;
  const x = (t) => (width * (t - view.first)) / Math.max(view.last - view.first, 1);
  const bunches = [];
  for (const mark of view.marks ?? []) {
    const last = bunches.at(-1);
    if (last && x(mark.t) - x(last[0].t) < APART) last.push(mark);
    else bunches.push([mark]);
  }
  const wanted = JSON.stringify([width, view.first, bunches.map((bunch) => [x(bunch[0].t), bunch.length])]);
  if (place.dataset.drawn === wanted) return;
  place.dataset.drawn = wanted;
  const focus = place.contains(document.activeElement) ? document.activeElement.id : "";
  place.replaceChildren(...bunches.map((bunch) => button(bunch, strip.offsetLeft + x(bunch[0].t))));
  if (focus) document.getElementById(focus)?.focus();
}

function button(bunch, left) {
  const kind = ORDER.find((one) => bunch.some((mark) => mark.kind === one)) ?? "rebalance";
  const first = bunch.find((mark) => mark.kind === kind);
  const says = bunch.map((mark) => `${time(mark.t)} ${mark.says}`).join("\n");
  const made = el(
    "button",
    {
      type: "button",
      class: `mark-button ${kind}`,
      id: `mark-${first.t}`,
      "data-t": first.t,
      title: says,
      "aria-label": `go to ${says}`,
    },
    KINDS[kind],
  );
  made.style.left = `${left}px`;
  return made;
}
