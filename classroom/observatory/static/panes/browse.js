// §3.1: a message is found by arithmetic. Its bytes, coloured, and the next offset computed in front of you.
import { ask, may } from "/static/act.js";
import { address, count, el, links } from "/static/dom.js";

export const title = "Browse";
export const uses = ["topic", "partition", "from", "contains"];

const NO_BYTES = "A recording holds no message bytes; browse a live cluster.";
const FROM_HINT =
  "From: begin, end, an offset, ~offset (the message around it), -20 (the last 20), @2026-01-31T12:00 (a time; the " +
  "brokers of 2011 know the times of whole files). Containing: any text of a message; found by reading, as there is " +
  "no index.";
const ALL = "all";

export function draw(view, state) {
  if (view.replay) {
    return el("div", {}, el("h2", {}, "Messages"), el("p", { class: "warn" }, NO_BYTES), links(view, "message"));
  }
  const names = (view.topic?.partitions ?? []).map((p) => p.name);
  const chosen = state.partition || names[0];
  const choices = [...names, ALL].map((name) => el("option", { selected: name === chosen }, name));
  const partition = el("select", { name: "partition", id: "partition" }, choices);
  const from = el("input", {
    name: "from",
    id: "from",
    value: state.from || "begin",
    size: 18,
    "aria-describedby": "from-hint",
  });
  const contains = el("input", { name: "contains", id: "contains", value: state.contains, size: 18, type: "search" });
  const result = el("div", { id: "messages", "aria-live": "polite" });
  const go = (start = from.value) => {
    state.partition = partition.value;
    state.from = from.value = String(start);
    state.contains = contains.value;
    const place = partition.value === ALL ? "" : partition.value;
    read({ topic: view.chosen.topic, partition: place, from: state.from, contains: state.contains }, result, go);
  };
  partition.addEventListener("change", () => go("begin"));
  const submit = (event) => {
    event.preventDefault();
    go();
  };
  const form = el(
    "form",
    { class: "ask", onsubmit: submit },
    el("label", {}, "partition ", partition),
    el("label", {}, "from ", from),
    el("label", {}, "containing ", contains),
    el("button", {}, "read"),
    el("p", { id: "from-hint", class: "hint" }, FROM_HINT),
  );
  if (names.length) go();
  return el(
    "div",
    {},
    el("h2", {}, `Messages of ${view.chosen.topic}`),
    form,
    publish(view, state, names),
    result,
    links(view, "message"),
  );
}

// What one reads stays put while the cluster moves on.
export function update() {}

// One message, published as any producer would, and where it lies then.
function publish(view, state, names) {
  if (!may(view, "/api/publish")) return null;
  const partition = el("select", { id: "publish-partition" }, names.map((name) => el("option", {}, name)));
  const payload = el("textarea", { id: "publish-payload", rows: 2, cols: 50, maxlength: 8000 });
  const said = el("p", { id: "published", role: "status" });
  const isModern = view.topic?.partitions.some((one) => one.era === "modern");
  const key = el("input", { id: "publish-key", size: 12 });
  const headers = el("textarea", { id: "publish-headers", rows: 2, cols: 24, placeholder: "name: value" });
  const tombstone = el("input", { id: "publish-tombstone", type: "checkbox" });
  const submit = async (event) => {
    event.preventDefault();
    said.replaceChildren("…");
    const wish = { topic: view.chosen.topic, partition: partition.value, payload: payload.value };
    if (isModern) Object.assign(wish, { key: key.value, headers: headers.value, tombstone: tombstone.checked });
    const done = await ask(state.view, "/api/publish", wish);
    if (done.error) said.replaceChildren(el("span", { class: "bad" }, done.error));
    else said.replaceChildren(`${done.said} `, el("a", { href: address("browse", done.link) }, "read it"));
  };
  return el(
    "details",
    { id: "publish" },
    el("summary", {}, `Publish a message to ${view.chosen.topic}`),
    el(
      "form",
      { class: "ask", onsubmit: submit },
      el("label", {}, "partition ", partition),
      isModern ? el("label", {}, "key ", key) : null,
      el("label", {}, "message ", payload),
      isModern ? el("label", {}, "headers ", headers) : null,
      isModern ? el("label", {}, tombstone, " no value (a tombstone)") : null,
      el("button", { id: "publish-go" }, "publish"),
      said,
    ),
  );
}

async function read(question, result, go) {
  result.setAttribute("aria-busy", "true");
  const answer = await fetch(`/api/messages?${new URLSearchParams(question)}`);
  const body = await answer.json();
  result.removeAttribute("aria-busy");
  if (!answer.ok) {
    result.replaceChildren(el("p", { class: "bad" }, body.error));
    return;
  }
  const looked = searched(question, body, go);
  if (!body.messages.length) {
    const none = question.contains ? "No message found." : `No message after offset ${count(body.from)} yet.`;
    result.replaceChildren(el("p", { class: "hint" }, none), looked);
    return;
  }
  const detail = el("div", { id: "anatomy" });
  const choose = (index) => {
    detail.replaceChildren(anatomy(body.messages[index]));
    for (const [i, row] of [...list.children].entries()) row.firstChild.setAttribute("aria-pressed", i === index);
  };
  const list = el(
    "ol",
    { class: "messages tall", id: "list" },
    body.messages.map((message, i) => el("li", {}, line(message, !question.partition, () => choose(i)))),
  );
  list.addEventListener("keydown", (event) => {
    const next = { ArrowDown: "nextSibling", ArrowUp: "previousSibling" }[event.key];
    const row = next && document.activeElement.parentElement[next];
    if (!row) return;
    event.preventDefault();
    row.firstChild.focus();
    row.firstChild.click();
  });
  const heading = el("h3", {}, `${body.messages.length} messages from offset ${count(body.from)}`);
  result.replaceChildren(el("div", { class: "columns browse" }, el("section", {}, heading, list, looked), detail));
  choose(0);
}

// How far a search came, and the way on.
function searched(question, body, go) {
  const says = `${count(body.searched)} messages read`;
  const more =
    body.next === null
      ? null
      : el("button", { type: "button", id: "go-on", onclick: () => go(body.next) }, "go on from here");
  if (!question.contains) return more;
  const end = body.complete ? ", to the end of what is flushed. " : ", then time or room was up. ";
  return el("p", { class: "hint", id: "searched" }, says, end, more);
}

function line(message, named, onclick) {
  const warning = message.bad ? el("b", {}, " damaged ") : " ";
  const attributes = { type: "button", class: message.bad ? "bad" : null, onclick };
  const place = [named ? `${message.partition} ` : null, message.key ? `${message.key} → ` : null];
  return el("button", attributes, place, el("b", {}, count(message.offset)), warning, message.text);
}

function anatomy(message) {
  const parts = message.parts.map(([kind, hex, meaning]) =>
    (hex.match(/../g) ?? []).map((byte) => el("span", { class: kindOf(kind, message), title: meaning }, byte)),
  );
  const fields = message.parts.map(([kind, , meaning]) => {
    const name = el("span", { class: "hex" }, el("span", { class: kindOf(kind, message) }, kind));
    return el("li", { class: kind === "crc" && message.bad ? "bad" : null }, name, ` ${meaning}`);
  });
  if (message.era === "modern") return modernAnatomy(message, fields, parts);
  const sum = `${count(message.offset)} + 4 + ${message.size - 4} = ${count(message.next_offset)}`;
  return el(
    "section",
    { class: message.bad ? "damaged" : null },
    el("h3", {}, `The message at ${count(message.offset)}, byte by byte`),
    message.bad ? el("p", { class: "bad", id: "bad-entry" }, damage(message)) : null,
    el("ul", { class: "fields" }, fields),
    el("p", { class: "hex", id: "hex" }, parts),
    el("p", { id: "sum" }, el("strong", {}, sum), " is the offset of the next message: no index, only addition."),
    body(message),
  );
}

// A record of today and the batch around it: one CRC for all, offsets that count, an index that leads there.
function modernAnatomy(message, fields, parts) {
  const [first, last, records] = message.batch;
  const holes = last - first + 1 - records;
  const gone = holes ? ` ${holes} of its offsets hold nothing any more: compaction took them away.` : "";
  return el(
    "section",
    { class: message.bad ? "damaged" : null },
    el("h3", {}, `The record at ${count(message.offset)}`),
    el(
      "dl",
      { class: "record" },
      el("dt", {}, "key"),
      el("dd", { id: "record-key" }, message.key ?? "none"),
      el("dt", {}, "time"),
      el("dd", {}, new Date(message.timestamp).toISOString()),
      message.headers.map(([name, value]) => [el("dt", {}, `header ${name}`), el("dd", {}, value)]),
    ),
    message.tombstone
      ? el("p", { class: "warn", id: "tombstone" }, "A tombstone: compaction removes this key, and later this record.")
      : body({ ...message, parts: [["payload", message.value, ""]] }),
    el("h3", {}, `Its batch, byte by byte: offsets ${count(first)} to ${count(last)}`),
    message.bad ? el("p", { class: "bad", id: "bad-entry" }, `Damaged: ${message.bad}.`) : null,
    el("ul", { class: "fields" }, fields),
    el("p", { class: "hex", id: "hex" }, parts),
    el("p", { id: "sum" }, el("strong", {}, `${count(records)} records`), ` under one CRC.${gone}`),
  );
}

const kindOf = (kind, message) => (kind === "crc" && message.bad ? "crc wrong" : kind.replaceAll(" ", "-"));

function damage(message) {
  const next = count(message.next_offset);
  return `This message is damaged: ${message.bad}. A reader stops here and says so; the next message is at ${next}.`;
}

function body(message) {
  if (message.decoded === null) return [el("h3", {}, "As text"), el("pre", {}, text(message.parts.at(-1)[1]))];
  return [el("h3", {}, `Decoded: ${message.format}`), el("pre", {}, JSON.stringify(message.decoded, null, 2))];
}

function text(hex) {
  const values = (hex.match(/../g) ?? []).map((byte) => parseInt(byte, 16));
  return new TextDecoder().decode(new Uint8Array(values));
}
