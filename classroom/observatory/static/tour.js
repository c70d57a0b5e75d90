// Five minutes through the page, for a class: what to say, what to look at, and what to do.
import { el } from "/static/dom.js";

const STEPS = [
  {
    pane: "overview",
    title: "The whole system on one page",
    says:
      "Activity events of a social network are published on the left. Brokers in the middle only append them to " +
      "files. Two groups on the right read everything, each at its own pace; a load copies it into a " +
      "warehouse.",
    look: "#flow",
  },
  {
    pane: "segments",
    title: "A partition is a row of files",
    says:
      "§3.1: a log is a set of segment files; the broker appends to the last one. There are no message ids: a " +
      "message is found by its byte offset, so the broker needs no index.",
    look: "#segments-picture",
  },
  {
    pane: "segments",
    title: "Only flushed bytes can be read",
    says:
      "The hatched end of a bar is written but not flushed, and nobody can fetch it. The ticks are offsets that " +
      "groups have stored. The broker itself knows nothing about its readers.",
    look: "#segments-legend",
  },
  {
    pane: "browse",
    title: "One message, byte by byte",
    says:
      "Length, format, CRC, payload. This offset plus the length is the offset of the next message: that sum is " +
      "all the index there is.",
    look: "#sum",
  },
  {
    pane: "zookeeper",
    title: "Four registries",
    says:
      "§3.2: brokers, consumers, owners and offsets are nodes in ZooKeeper. What is italic is ephemeral: it " +
      "vanishes with the session of its process. The bell marks lists that consumers watch.",
    look: "#tree",
  },
  {
    pane: "ownership",
    title: "Each partition has one reader in a group",
    says:
      "A lane per consumer, a strip per partition. Above Algorithm 1, where every consumer decides by itself " +
      "from the same lists; below the protocol that replaced it, where a coordinator decides.",
    look: "#lanes",
  },
  {
    pane: "ownership",
    title: "Kill a consumer",
    says:
      "Choose “Kill a consumer” above and press “do it”. Its strips turn red at once: it is dead, but ZooKeeper " +
      "still believes in it.",
    without:
      "With --allow-faults one could kill a consumer from here. In this run, look for red strips.",
    look: "#strike",
  },
  {
    pane: "ownership",
    title: "The others take over",
    says:
      "After the session timeout its nodes vanish, the others are told, and each computes its new share. Wait " +
      "for the verdict above: it also counts the messages that came a second time (§3.3, at least once).",
    look: "#lanes",
  },
  {
    pane: "groups",
    title: "What nobody read waits",
    says:
      "The lag grew while nobody read the dead consumer's partitions, and shrinks now. A broker does not mind: " +
      "messages stay for a fixed time, whether they were read or not.",
    look: "#pane",
  },
  {
    pane: "load",
    title: "The night load",
    says:
      "§4: a job reads ranges of bytes and stores rows and offsets in one commit, so that a restart neither " +
      "loses nor doubles anything. The audit compares with what the producers counted.",
    look: "#pane",
  },
  {
    pane: "faults",
    title: "Break more",
    says:
      "Each card says beforehand what the paper promises. Flip a bit and follow the link to the red byte; stop " +
      "a broker and look at Segments; lose a batch and wait for the audit.",
    without:
      "With --allow-faults this pane breaks things on purpose and judges what follows.",
    look: "#cards",
  },
  {
    pane: "overview",
    title: "That is the paper",
    says:
      "Every pane ends with the sentence it shows and the lines of code that do it. Drag the strip below to go " +
      "back in time; the marks on it are what you broke. “Save this run” keeps it all for the next class.",
    look: "#strip",
  },
];

export function go(place, state, choose) {
  const step = STEPS[state.tour];
  if (step.pane !== state.pane) choose(step.pane);
  draw(place, state, choose, true);
}

export function draw(place, state, choose, moved = false) {
  for (const node of document.querySelectorAll(".toured")) node.classList.remove("toured");
  const step = STEPS[state.tour];
  place.hidden = !step;
  if (!step) {
    place.dataset.step = "";
    return;
  }
  document.querySelector(step.look)?.classList.add("toured");
  if (place.dataset.step === String(state.tour) && !moved) return;
  place.dataset.step = state.tour;
  place.replaceChildren(...words(step, state, place, choose));
  place.querySelector("#tour-next")?.focus({ preventScroll: true });
}

function words(step, state, place, choose) {
  const to = (number) => () => {
    state.tour = STEPS[number] ? number : null;
    if (state.tour === null) draw(place, state, choose);
    else go(place, state, choose);
  };
  const mayBreak = (state.view?.may ?? []).includes("/api/fault");
  const number = state.tour;
  const last = number === STEPS.length - 1;
  return [
    el("h2", {}, `${number + 1} of ${STEPS.length}: ${step.title}`),
    el("p", { role: "status" }, mayBreak ? step.says : (step.without ?? step.says)),
    el(
      "p",
      { class: "buttons" },
      el("button", { type: "button", id: "tour-end", onclick: to(-1) }, "end"),
      " ",
      el("button", { type: "button", id: "tour-back", disabled: number === 0, onclick: to(number - 1) }, "back"),
      " ",
      el("button", { type: "button", id: "tour-next", class: "go", onclick: to(number + 1) }, last ? "done" : "next"),
    ),
  ];
}
