// A colour and a pattern for each partition: eight colours, then the same ones with stripes, dots and so on.
import { svg } from "/static/dom.js";

// Okabe-Ito: safe for colour-blind eyes. The name stands beside the colour, so colour is never the only sign.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#7f7f7f"];
const OVERLAYS = [
  "",
  "M0 0V8",
  "M0 0H8",
  "M2 3h1v1h-1z",
  "M0 0V8M2 0V8",
  "M0 0V8M0 0H8",
];

export const colour = (index) => COLOURS[index % COLOURS.length];

// The paints of a list of names, in the order of their numbers.
export function paints(names) {
  const sorted = [...names].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const places = new Map(sorted.map((name, place) => [name, place]));
  return {
    fill: (name) => (places.get(name) < COLOURS.length ? colour(places.get(name)) : `url(#paint-${places.get(name)})`),
    defs: () => sorted.map((name, place) => (place < COLOURS.length ? null : pattern(place))),
  };
}

function pattern(place) {
  const overlay = OVERLAYS[Math.floor(place / COLOURS.length) % OVERLAYS.length];
  return svg(
    "pattern",
    { id: `paint-${place}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    svg("rect", { width: 8, height: 8, fill: colour(place) }),
    svg("path", { d: overlay, stroke: "#ffffff", "stroke-width": 2, fill: "#ffffff" }),
  );
}

export function hatch(id, fill, width) {
  const turned = { width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  return svg("pattern", { id, ...turned }, svg("rect", { width, height: 5, fill }));
}

export function chip(fill) {
  const size = { width: 12, height: 12 };
  return svg("svg", { class: "chip", ...size, "aria-hidden": "true" }, svg("rect", { ...size, fill }));
}
