// A small plot: lines where x is a number, bars where it is a name. Points may still be coming.
import { el, svg } from "/static/dom.js";

const WIDTH = 420;
const HEIGHT = 190;
const LEFT = 52;
const BOTTOM = 34;
const TOP = 22;
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

export function plot({ x, y, log, points }) {
  const names = [...new Set(points.map(([series]) => series))];
  const most = Math.max(...points.map(([, , value]) => value), 1e-9);
  const down = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / most;
  const numeric = points.length > 0 && points.every(([, at]) => typeof at === "number");
  const body = numeric ? lines(points, names, log, down) : bars(points, names, down);
  const size = { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}` };
  const ticks = [0, most / 2, most].flatMap((value) => [
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: down(value), y2: down(value) }),
    svg("text", { x: LEFT - 4, y: down(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  return el(
    "figure",
    {},
    svg(
      "svg",
      { ...size, role: "img", "aria-label": `${y}, by ${x}: ${points.length} points` },
      ticks,
      body,
      svg("text", { x: LEFT, y: 12 }, y),
      svg("text", { x: WIDTH / 2, y: HEIGHT - 2, "text-anchor": "middle" }, x),
    ),
    names.length > 1 ? el("figcaption", {}, names.map((name, i) => key(name, i))) : null,
  );
}

function key(name, i) {
  const square = svg("rect", { width: 10, height: 10, fill: colour(i) });
  return el("span", {}, svg("svg", { width: 10, height: 10 }, square), ` ${name} `);
}

function lines(points, names, log, down) {
  const place = (at) => (log ? Math.log10(Math.max(at, 1e-9)) : at);
  const all = points.map(([, at]) => place(at));
  const low = Math.min(...all);
  const span = Math.max(...all) - low || 1;
  const across = (at) => LEFT + 6 + ((WIDTH - LEFT - 12) * (place(at) - low)) / span;
  const ends = [Math.min(...points.map(([, at]) => at)), Math.max(...points.map(([, at]) => at))];
  const labels = ends.map((at, i) => {
    const anchor = i ? "end" : "start";
    return svg("text", { x: across(at), y: HEIGHT - BOTTOM + 14, "text-anchor": anchor }, short(at));
  });
  const drawn = names.map((name, i) => {
    const own = points.filter(([series]) => series === name).sort((a, b) => a[1] - b[1]);
    const line = own.map(([, at, value]) => `${across(at).toFixed(1)},${down(value).toFixed(1)}`).join(" ");
    const dot = ([, at, value]) => svg("circle", { cx: across(at), cy: down(value), r: 2.4, fill: colour(i) });
    return [svg("polyline", { points: line, fill: "none", stroke: colour(i), "stroke-width": 1.5 }), own.map(dot)];
  });
  return [labels, drawn];
}

function bars(points, names, down) {
  const groups = [...new Set(points.map(([, at]) => String(at)))];
  const room = (WIDTH - LEFT) / groups.length;
  const wide = Math.min(46, (0.8 * room) / names.length);
  const label = (group, i) => {
    const middle = LEFT + room * (i + 0.5);
    return svg("text", { x: middle, y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, group);
  };
  const bar = ([series, at, value]) => {
    const place = names.indexOf(series);
    const left = LEFT + room * (groups.indexOf(String(at)) + 0.5) + (place - names.length / 2) * wide;
    const tall = HEIGHT - BOTTOM - down(value);
    return [
      svg("rect", { x: left, y: down(value), width: 0.92 * wide, height: tall, fill: colour(place) }),
      svg("text", { x: left + wide / 2, y: down(value) - 3, "text-anchor": "middle" }, short(value)),
    ];
  };
  return [groups.map(label), points.map(bar)];
}

const colour = (i) => COLOURS[i % COLOURS.length];

const short = (value) =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3));
