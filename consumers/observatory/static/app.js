// One view of the cluster at a time: live by server-sent events, or a moment of the journal dragged back to.
import { el, time } from "/static/dom.js";
import * as segments from "/static/panes/segments.js";
import * as zookeeper from "/static/panes/zookeeper.js";
import * as ownership from "/static/panes/ownership.js";
import * as groups from "/static/panes/groups.js";
import * as brokers from "/static/panes/brokers.js";
import * as load from "/static/panes/load.js";
import * as browse from "/static/panes/browse.js";
import * as faults from "/static/panes/faults.js";

const PANES = { segments, zookeeper, ownership, groups, brokers, load, browse, faults };
const $ = (id) => document.getElementById(id);
const state = { pane: "segments", topic: "", group: "", at: null, view: null, stream: null };

function readAddress() {
  const [pane, query] = location.hash.slice(1).split("?");
  const parameters = new URLSearchParams(query || "");
  state.pane = PANES[pane] ? pane : "segments";
  state.topic = parameters.get("topic") || state.topic;
  state.group = parameters.get("group") || state.group;
  state.at = parameters.get("at") ? Number(parameters.get("at")) : null;
}

// One address per state, so that what one sees can be shared.
function writeAddress() {
  const parameters = new URLSearchParams();
  for (const key of ["topic", "group", "at"]) if (state[key]) parameters.set(key, state[key]);
  const hash = `#${state.pane}?${parameters}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

function query() {
  return new URLSearchParams({ topic: state.topic, group: state.group, pane: state.pane }).toString();
}

function listen() {
  state.stream?.close();
  state.stream = new EventSource(`/api/stream?${query()}`);
  state.stream.addEventListener("view", (message) => {
    $("connection").className = "";
    const view = JSON.parse(message.data);
    updateStrip(view);
    if (state.at === null) show(view);
  });
  state.stream.onerror = () => {
    $("connection").className = "lost";
    $("connection").textContent = "the observatory does not answer; trying again…";
  };
}

async function lookBack() {
  const answer = await fetch(`/api/view?at=${state.at}&${query()}`);
  if (answer.ok) show(await answer.json());
}

function show(view) {
  state.view = view;
  if (!state.topic && view.topics.length) state.topic = view.topics[0];
  if (!state.group && view.groups.length) state.group = view.groups[0].name;
  options($("topic"), view.topics, state.topic);
  options($("group"), view.groups.map((group) => group.name), state.group);
  const alive = view.brokers.filter((broker) => broker.alive).length;
  $("headline").textContent = `${alive} of ${view.brokers.length} brokers, ${view.topics.length} topics, ${view.groups.length} groups`;
  $("connection").textContent = view.replay ? "a recorded run" : state.at === null ? "live" : "looking back";
  $("clock").textContent = time(view.t);
  draw();
}

function draw() {
  for (const tab of $("tabs").children) tab.setAttribute("aria-selected", tab.dataset.pane === state.pane);
  writeAddress();
  if (!state.view) return;
  const pane = $("pane");
  // A pane that holds a form keeps it: drawing again would take the focus away from whoever types.
  if (pane.dataset.drawn === state.pane && PANES[state.pane].update) PANES[state.pane].update(pane, state.view, state);
  else {
    pane.replaceChildren(PANES[state.pane].draw(state.view, state));
    pane.dataset.drawn = state.pane;
  }
}

function options(select, names, chosen) {
  const wanted = names.join("\n");
  if (select.dataset.names !== wanted) {
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    select.dataset.names = wanted;
  }
  select.value = chosen;
}

function updateStrip(view) {
  const strip = $("when");
  strip.min = view.first;
  strip.max = view.last;
  strip.step = 100;
  if (state.at === null) strip.value = view.last;
}

function goTo(at) {
  state.at = at;
  $("live").setAttribute("aria-pressed", at === null);
  writeAddress();
  if (at === null) listen(); else lookBack();
}

function choose(pane) {
  state.pane = pane;
  $("pane").dataset.drawn = "";
  draw();
  listen();
  if (state.at !== null) lookBack();
}

for (const [name, pane] of Object.entries(PANES)) {
  $("tabs").append(el("a", { href: `#${name}`, role: "tab", "data-pane": name, onclick: (event) => { event.preventDefault(); choose(name); } }, pane.title));
}
$("topic").addEventListener("change", (event) => { state.topic = event.target.value; choose(state.pane); });
$("group").addEventListener("change", (event) => { state.group = event.target.value; choose(state.pane); });
$("live").addEventListener("click", () => goTo(state.at === null ? state.view?.last ?? null : null));
$("when").addEventListener("input", (event) => goTo(Number(event.target.value)));
$("back").addEventListener("click", () => goTo((state.at ?? state.view.last) - 1000));
$("forward").addEventListener("click", () => goTo((state.at ?? state.view.last) + 1000));
addEventListener("hashchange", () => { readAddress(); choose(state.pane); });
addEventListener("keydown", (event) => {
  if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const names = Object.keys(PANES);
  if (event.key >= "1" && event.key <= String(names.length)) choose(names[Number(event.key) - 1]);
  else if (event.key === "ArrowLeft") $("back").click();
  else if (event.key === "ArrowRight") $("forward").click();
  else if (event.key === " ") { event.preventDefault(); $("live").click(); }
});

readAddress();
draw();
listen();
if (state.at !== null) goTo(state.at);
