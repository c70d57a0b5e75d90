// One view of the cluster at a time: live by server-sent events, or a moment of the journal dragged back to.
import { el, replace, time } from "/static/dom.js";
import { updateStrip } from "/static/strip.js";
import * as tour from "/static/tour.js";
import * as words from "/static/words.js";
import * as overview from "/static/panes/overview.js";
import * as segments from "/static/panes/segments.js";
import * as zookeeper from "/static/panes/zookeeper.js";
import * as ownership from "/static/panes/ownership.js";
import * as groups from "/static/panes/groups.js";
import * as brokers from "/static/panes/brokers.js";
import * as load from "/static/panes/load.js";
import * as browse from "/static/panes/browse.js";
import * as faults from "/static/panes/faults.js";
import * as claims from "/static/panes/claims.js";

const PANES = { overview, segments, zookeeper, ownership, groups, brokers, load, browse, faults, claims };
const KEYS = ["topic", "group", "partition", "from", "contains"];
const $ = (id) => document.getElementById(id);
const state = {
  pane: "overview",
  topic: "",
  group: "",
  partition: "",
  from: "",
  contains: "",
  at: null,
  tour: null,
  view: null,
  stream: null,
  playing: null,
  // Where one was in each pane: a pane seen for the first time begins at its top, one come back to is as it was left.
  scrolled: {},
};

function readAddress() {
  const [pane, query] = location.hash.slice(1).split("?");
  const parameters = new URLSearchParams(query || "");
  state.pane = PANES[pane] ? pane : "overview";
  for (const key of KEYS) state[key] = parameters.get(key) ?? state[key];
  state.at = parameters.get("at") ? Number(parameters.get("at")) : null;
  state.tour = parameters.has("tour") ? Number(parameters.get("tour")) : null;
}

// One address per state, so that what one sees can be shared.
function writeAddress() {
  const parameters = new URLSearchParams();
  for (const key of PANES[state.pane].uses ?? []) if (state[key]) parameters.set(key, state[key]);
  if (state.at !== null) parameters.set("at", state.at);
  if (state.tour !== null) parameters.set("tour", state.tour);
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
    updateStrip(view, state.at);
    if (state.at === null) show(view);
  });
  state.stream.onerror = () => {
    $("connection").className = "lost";
    $("connection").textContent = "the observatory does not answer; trying again…";
  };
}

async function lookBack() {
  const wanted = state.at;
  const answer = await fetch(`/api/view?at=${wanted}&${query()}`);
  if (answer.ok && state.at === wanted) show(await answer.json());
}

function show(view) {
  state.view = view;
  state.topic ||= view.chosen.topic;
  // Ask again under its name: the group one looks at is always read whole.
  if (!state.group && view.chosen.group) {
    state.group = view.chosen.group;
    if (state.at === null) listen();
  }
  options($("topic"), view.topics, view.chosen.topic);
  options($("group"), view.groups.map((group) => group.name), view.chosen.group);
  $("headline").textContent = headline(view);
  $("connection").textContent = connection(view);
  $("clock").textContent = time(view.t);
  updateStrip(view, state.at);
  draw();
}

function headline(view) {
  const alive = view.brokers.filter((broker) => broker.alive).length;
  return `${alive} of ${view.brokers.length} brokers, ${view.topics.length} topics, ${view.groups.length} groups`;
}

function connection(view) {
  if (view.replay) return "a recorded run";
  return state.at === null ? "live" : "looking back";
}

function draw() {
  const uses = PANES[state.pane].uses ?? [];
  for (const tab of $("tabs").children) tab.setAttribute("aria-selected", tab.dataset.pane === state.pane);
  showTab($(`tab-${state.pane}`));
  for (const key of ["topic", "group"]) $(`${key}-choice`).hidden = !uses.includes(key);
  $("live").textContent = state.at === null ? "pause" : "go live";
  $("live").setAttribute("aria-pressed", state.at !== null);
  $("play").setAttribute("aria-pressed", state.playing !== null);
  writeAddress();
  if (!state.view) return;
  drawTools($("tools"), PANES[state.pane]);
  drawPane($("pane"), PANES[state.pane]);
  tour.draw($("tour"), state, choose);
}

// On a phone the tabs are one row that can be pushed; the chosen one is always in sight.
function showTab(tab) {
  const row = $("tabs");
  const hidden = tab.offsetLeft < row.scrollLeft || tab.offsetLeft + tab.offsetWidth > row.scrollLeft + row.clientWidth;
  if (row.dataset.shown !== tab.id && hidden) row.scrollLeft = tab.offsetLeft - 20;
  row.dataset.shown = tab.id;
}

// What one does on a pane stands above its picture and is not drawn again while somebody chooses or types.
function drawTools(place, pane) {
  const { topic, group } = state.view.chosen;
  const key = `${state.pane} ${topic} ${group}`;
  if (place.dataset.drawn !== key || place.hidden) {
    const tools = state.view.replay ? null : pane.tools?.(state.view, state);
    place.replaceChildren(...(tools ? [tools] : []));
    place.hidden = !tools;
    place.dataset.drawn = key;
  } else pane.updateTools?.(place, state.view, state);
}

function drawPane(place, pane) {
  const before = place.dataset.drawn;
  // A pane that holds a form keeps it: drawing again would take the words away from whoever types.
  if (before === state.pane && pane.update) {
    pane.update(place, state.view, state);
    return;
  }
  const width = place.clientWidth - 2 * parseFloat(getComputedStyle(place).paddingLeft);
  replace(place, pane.draw(state.view, state, Math.floor(width)));
  place.dataset.drawn = state.pane;
  if (before !== state.pane) scrollTo(0, state.scrolled[state.pane] ?? 0);
}

function options(select, names, chosen) {
  const wanted = names.join("\n");
  if (select.dataset.names !== wanted) {
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    select.dataset.names = wanted;
  }
  select.value = chosen;
}

function goTo(at) {
  if (at === null) {
    state.at = null;
    stopPlaying();
    draw();
    listen();
    return;
  }
  const last = state.view?.last || at;
  state.at = Math.min(Math.max(at, state.view?.first ?? 0), last);
  $("when").value = state.at;
  lookBack();
}

function stopPlaying() {
  clearInterval(state.playing);
  state.playing = null;
}

// From where one looks to the end, a second a second; at the end from the beginning.
function play() {
  if (state.playing !== null) {
    stopPlaying();
    draw();
    return;
  }
  if (!state.view) return;
  goTo(state.at === null || state.at >= state.view.last ? state.view.first : state.at);
  state.playing = setInterval(() => {
    if (state.at >= state.view.last) stopPlaying();
    else goTo(state.at + 1000);
  }, 1000);
}

// A second to the left or to the right of where one looks.
function step(ms) {
  stopPlaying();
  goTo((state.at ?? state.view.last) + ms);
}

function choose(pane) {
  const drawn = $("pane").dataset.drawn;
  if (drawn) state.scrolled[drawn] = scrollY;
  state.pane = pane;
  $("pane").dataset.drawn = "";
  listen();
  if (state.at !== null) lookBack();
  else writeAddress();
}

function tab(name, pane, key) {
  const onclick = (event) => {
    event.preventDefault();
    choose(name);
  };
  const attributes = { href: `#${name}`, id: `tab-${name}`, role: "tab", "data-pane": name, title: `key ${key}` };
  return el("a", { ...attributes, onclick }, pane.title);
}

function press(event) {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
  const names = Object.keys(PANES);
  // 1 to 9, then 0 for the tenth.
  const name = /^[0-9]$/.test(event.key) ? names[(Number(event.key) + 9) % 10] : undefined;
  if (name) choose(name);
  else if (event.key === "ArrowLeft") $("back").click();
  else if (event.key === "ArrowRight") $("forward").click();
  else if (event.key === " " && event.target.tagName !== "BUTTON") {
    event.preventDefault();
    $("live").click();
  }
}

for (const [i, [name, pane]] of Object.entries(PANES).entries()) $("tabs").append(tab(name, pane, (i + 1) % 10));
for (const key of ["topic", "group"]) {
  $(key).addEventListener("change", (event) => {
    Object.assign(state, { [key]: event.target.value, partition: "", from: "" });
    choose(state.pane);
  });
}
$("live").addEventListener("click", () => goTo(state.at === null ? (state.view?.last ?? null) : null));
$("play").addEventListener("click", play);
$("when").addEventListener("input", (event) => {
  stopPlaying();
  goTo(Number(event.target.value));
});
$("back").addEventListener("click", () => step(-1000));
$("forward").addEventListener("click", () => step(1000));
$("marks").addEventListener("click", (event) => {
  const t = Number(event.target.dataset?.t);
  if (!t) return;
  stopPlaying();
  // On a pane where one sees what happened; from the others the way leads to Ownership.
  if (!["segments", "ownership", "zookeeper", "groups", "brokers"].includes(state.pane)) choose("ownership");
  goTo(t);
});
$("begin-tour").addEventListener("click", () => {
  state.tour = 0;
  tour.go($("tour"), state, choose);
});
addEventListener("hashchange", () => {
  readAddress();
  choose(state.pane);
});
addEventListener("resize", draw);
addEventListener("keydown", press);
words.begin(document.body);

readAddress();
draw();
listen();
if (state.at !== null) lookBack();
