// Building the page without innerHTML: whatever comes from the cluster is text, never markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) node.append(child.nodeType ? child : String(child));
  }
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

// Put a new picture in place of the old one without disturbing whoever looks: focus, scrolled lists and opened parts
// stay.
export function replace(pane, picture) {
  const focus = pane.contains(document.activeElement) ? document.activeElement.id : "";
  const named = [...pane.querySelectorAll("[id]")];
  const scrolled = named
    .filter((node) => node.scrollTop || node.scrollLeft)
    .map((node) => [node.id, node.scrollTop, node.scrollLeft]);
  const folds = [...pane.querySelectorAll("details[id]")].map((node) => [node.id, node.open]);
  pane.replaceChildren(picture);
  for (const [id, open] of folds) {
    const node = document.getElementById(id);
    if (node) node.open = open;
  }
  for (const [id, top, left] of scrolled) {
    document.getElementById(id)?.scrollTo(left, top);
  }
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

export const address = (pane, parameters) => `#${pane}?${new URLSearchParams(parameters)}`;

// Columns are [name] or [name, 1]: the second kind holds numbers.
export function table(caption, columns, rows) {
  const kind = (numeric) => (numeric ? "n" : null);
  const head = columns.map(([name, numeric]) => el("th", { scope: "col", class: kind(numeric) }, name));
  const cells = (row) => row.map((cell, i) => el("td", { class: kind(columns[i][1]) }, cell ?? "–"));
  // A table may be wider than a phone: then it is pushed sideways, also by keys.
  const name = caption || columns.map(([column]) => column).join(", ");
  const id = `table-${name.replace(/[^a-z0-9]+/gi, "-").slice(0, 40)}`;
  return el(
    "div",
    { class: "scroll", id, tabindex: 0, role: "region", "aria-label": name },
    el(
      "table",
      {},
      caption ? el("caption", {}, caption) : null,
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))),
    ),
  );
}

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(n) >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en"));

export const time = (ms) => new Date(ms).toLocaleTimeString("en-GB");

export function ago(ms) {
  if (ms < 1500) return "now";
  return ms < 90000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60000)} min`;
}

// "show me the code" and "show me the sentence", for every element that has an entry in the paper links.
export function links(view, key) {
  const found = view.links?.[key];
  if (!found) return null;
  const pane = location.hash.slice(1).split("?")[0];
  const href = `/source/${found.module}?back=${pane}#L${found.line}`;
  return el(
    "p",
    { class: "links" },
    "paper ",
    el("a", { href: `/paper?back=${pane}#${key}` }, found.section),
    " · ",
    el("span", {}, found.says),
    " · code ",
    el("a", { href }, `${found.module}:${found.line}`),
  );
}
