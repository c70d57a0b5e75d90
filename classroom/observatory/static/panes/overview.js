// The paper's Figure 1, alive: who publishes, who keeps, who reads, and the warehouse behind. Each box is a door.
import { address, bytes, count, el, links, svg, time } from "/static/dom.js";

export const title = "Overview";

const rate = (n) => (n === null || n === undefined ? "–" : `${bytes(n)}/s`);

export function draw(view) {
  const place = el("div", {});
  place.append(
    el("h2", {}, "What runs here"),
    el(
      "p",
      { class: "hint" },
      "Producers publish to brokers, brokers keep files, consumers pull from them at their own pace, and a nightly ",
      "job loads everything into a warehouse. Rates are of the last seconds. Click a box to look inside.",
    ),
    el("div", { class: "flow", id: "flow" }, boxes(view)),
    links(view, "broker"),
    links(view, "registries"),
  );
  return place;
}

// The boxes stay where they are, so that whoever is about to click one hits it and the arrows keep moving.
export function update(pane, view) {
  const fresh = new Map(boxes(view).map((node) => [node.id, node]));
  const flow = pane.querySelector("#flow");
  const old = [...flow.children];
  if (old.map((node) => node.id).join() !== [...fresh.keys()].join()) {
    flow.replaceChildren(...fresh.values());
    return;
  }
  for (const node of old) {
    const now = fresh.get(node.id);
    if (node.innerHTML === now.innerHTML) continue;
    if (node.classList.contains("arrow")) node.querySelector(".says").textContent = now.textContent;
    else swap(node, now);
  }
}

// A new inside for the same column; a door that has the focus keeps it.
function swap(node, now) {
  const focus = node.contains(document.activeElement) ? document.activeElement.id : "";
  node.replaceChildren(...now.childNodes);
  if (focus) document.getElementById(focus)?.focus();
}

function boxes(view) {
  const { brokers, flow } = view;
  const sum = (key) => brokers.reduce((total, broker) => total + (broker.alive ? (broker[key] ?? 0) : 0), 0);
  const read = flow.groups.reduce((total, group) => total + (group.rate ?? 0), 0);
  return [
    column("flow-producers", "Producers", producers(view, sum("message_rate"), sum("in_rate"))),
    arrow("flow-in", sum("in_rate"), `${rate(sum("in_rate"))}`),
    column("flow-brokers", "Brokers", brokers.map(broker)),
    arrow("flow-out", read, `${rate(read)}`),
    column("flow-groups", "Consumers", [groups(flow), el("h3", {}, "Warehouse"), warehouse(flow.load)]),
    column("flow-zookeeper", "ZooKeeper", [zookeeper(flow.zookeeper)]),
  ];
}

const column = (id, name, doors) => el("section", { id, class: "column" }, el("h3", {}, name), doors);

function door(id, href, name, lines, kind = "") {
  return el(
    "a",
    { class: `door ${kind}`, id, href },
    el("strong", {}, name),
    lines.map((line) => (line === null ? null : el("span", {}, line))),
  );
}

function producers(view, messages, size) {
  const [largest] = view.flow.topics;
  return [
    door("door-producers", address("browse", { topic: largest?.name ?? "" }), `${count(messages)} messages/s`, [
      `${rate(size)} published`,
      trend(view.flow.trend),
    ]),
    ...view.flow.topics.map(({ name, rate: grown }) =>
      door(`door-topic-${name}`, address("segments", { topic: name }), name, [rate(grown)], "small"),
    ),
  ];
}

function trend(points) {
  if (points.length < 2) return null;
  const most = Math.max(1, ...points.map(([, n]) => n));
  const first = points[0][0];
  const last = points.at(-1)[0];
  const x = (t) => (160 * (t - first)) / Math.max(last - first, 1);
  const line = points.map(([t, n]) => `${x(t).toFixed(1)},${(30 - (26 * n) / most).toFixed(1)}`).join(" ");
  const label = `published over the last minutes, at most ${rate(most)}`;
  return svg(
    "svg",
    { class: "trend", width: 160, height: 32, viewBox: "0 0 160 32", role: "img", "aria-label": label },
    svg("polyline", { points: line, fill: "none", "stroke-width": 2 }),
  );
}

function broker(one) {
  const lines = one.alive
    ? [`in ${rate(one.in_rate)} · out ${rate(one.out_rate)}`, `${bytes(one.size)} on disk`]
    : ["gone: what it holds waits, unreadable"];
  return door(`door-broker-${one.id}`, address("brokers", {}), `broker ${one.id}`, lines, one.alive ? "" : "bad");
}

function groups(flow) {
  const found = flow.groups.map((group) => {
    const protocol = group.kind === "modern" ? "a coordinator" : "Algorithm 1";
    const away = group.not_reading ? `${group.not_reading} of them not reading` : null;
    const lines = [`${group.members} members · ${protocol}`, `reads ${rate(group.rate)}`, away];
    const href = address("ownership", { group: group.name });
    return door(`door-group-${group.name}`, href, group.name, lines, away ? "bad" : "");
  });
  const more = flow.more_groups ? [door("door-groups", address("groups", {}), `and ${flow.more_groups} more`, [])] : [];
  return found.length ? [...found, ...more] : [el("p", { class: "hint" }, "Nobody reads yet.")];
}

function warehouse(load) {
  const lines = load
    ? [
        `${load.state}, planned at ${time(load.t)}`,
        `${count(load.rows)} rows, ${bytes(load.bytes)}`,
        Object.entries(load.audit).map(([name, n]) => `${count(n)} ${name}`).join(", ") || null,
      ]
    : ["no load has run yet"];
  return door("door-warehouse", address("load", {}), "the nightly load", lines, "warehouse");
}

function zookeeper(seen) {
  const lines = [
    `${count(seen.brokers)} brokers · ${count(seen.consumers)} consumers · ${count(seen.owners)} owned partitions · ` +
      `${count(seen.offsets)} stored offsets`,
    `kept by ${count(seen.sessions)} sessions`,
  ];
  return door("door-zookeeper", address("zookeeper", {}), "four registries", lines);
}

// Dashes that move: fast if much flows, still if nothing does.
function arrow(id, flowing, says) {
  const seconds = flowing > 0 ? Math.min(Math.max(4 - Math.log10(flowing + 1) / 2, 0.6), 4) : 0;
  const line = svg("line", { class: seconds ? "moving" : "", x1: 0, x2: 52, y1: 8, y2: 8 });
  line.style.animationDuration = `${seconds.toFixed(1)}s`;
  return el(
    "div",
    { class: "arrow", id },
    el("span", { class: "says" }, says),
    svg(
      "svg",
      { width: 64, height: 16, viewBox: "0 0 64 16", "aria-hidden": "true" },
      line,
      svg("path", { d: "M52 2l10 6-10 6z" }),
    ),
  );
}
