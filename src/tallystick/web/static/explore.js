// The page: sends requests to the server and shows the answers. It computes no numbers.

import { showAway } from "./away.js";
import { showRun, showSizes } from "./controls.js";
import { modelOf, pasted } from "./models.js";
import { ask, fragment, remember, restore, state } from "./state.js";

const at = (id) => document.getElementById(id);
const ALWAYS = ["count", "formula", "memory", "compute"];
const NAMES = [...ALWAYS, "compare", "reconcile", "check"];
const NARROWEST = 280, WIDEST = 1100; // pixels of a picture
let start, answers = {}, busy = false, again = false;

function complain(words) {
  at("error").textContent = words ?? "";
  at("error").hidden = !words;
}

async function refresh() {
  again = busy;
  if (busy) return;
  busy = true;
  do {
    again = false;
    const asked = { compare: state.other, reconcile: state.claim, check: state.text };
    const wanted = [...ALWAYS, ...Object.keys(asked).filter((name) => asked[name])];
    const width = Math.max(NARROWEST, Math.min(WIDEST, Math.floor(at("count").clientWidth)));
    show(await ask(wanted, width));
  } while (again);
  busy = false;
  remember();
  document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
}

function show(reply) {
  const whole = reply.error ?? reply.count.error;
  complain(whole);
  for (const name of NAMES) {
    const answer = reply[name];
    at(name).classList.toggle("stale", Boolean(whole));
    if (whole) continue;
    if (!answer) at(name).replaceChildren();
    else if (answer.error) at(name).replaceChildren(sentence(answer.error));
    else swap(at(name), answer.html);
  }
  if (whole) return;
  answers = reply;
  at("total").textContent = at("count").querySelector("p").textContent;
  document.title = `${at("total").textContent} · tallystick`;
  showSizes(at("controls"), reply.count.controls, set);
  showAway(at("away"), NAMES, answers, csv, copy);
}

function sentence(words) {
  const made = document.createElement("p");
  made.className = "bad";
  made.textContent = words;
  return made;
}

// The server's markup, with all names escaped; the content security policy forbids scripts in it.
function swap(place, html) {
  const tops = [...place.querySelectorAll(".scroll")].map((one) => one.scrollTop);
  place.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  place.querySelectorAll(".scroll").forEach((one, number) => { one.scrollTop = tops[number] ?? 0; });
}

function set(key, value) {
  if (value !== null) state.set[key] = value;
  refresh();
}

function choose(model) {
  state.model = model;
  state.set = {};
  at("name").value = model.name ?? model.file;
  at("pasting").hidden = true;
  at("paste").setAttribute("aria-expanded", "false");
  refresh();
}

async function open(file) {
  try {
    choose(await modelOf(file, start));
  } catch (error) {
    complain(error.message);
  }
}

async function csv() {
  const reply = await ask(["csv"], WIDEST);
  return reply.csv.csv;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    at("said").textContent = "Copied.";
  } catch {
    at("said").textContent = text; // the clipboard is blocked: show the text for copying by hand
  }
}

// Set the fields from the state.
function fill() {
  at("name").value = state.model.name ?? state.model.file ?? "";
  at("other").value = state.other ? state.other.name ?? state.other.file : "";
  for (const id of ["by", "layout", "claim", "text"]) at(id).value = state[id];
  showRun(at("run"), start.choices, state.run, refresh);
}

function listen() {
  const submit = (id, act) => at(id).addEventListener("submit", (event) => { event.preventDefault(); act(); });
  const click = (id, act) => at(id).addEventListener("click", act);
  submit("models", () => choose({ name: at("name").value.trim() }));
  submit("pasting", () => {
    try {
      choose(pasted(at("config").value, start));
    } catch (error) {
      complain(error.message);
    }
  });
  click("paste", () => {
    at("pasting").hidden = !at("pasting").hidden;
    at("paste").setAttribute("aria-expanded", String(!at("pasting").hidden));
    if (!at("pasting").hidden) at("config").focus();
  });
  at("file").addEventListener("change", () => { if (at("file").files.length) open(at("file").files[0]); });
  click("reset", () => { state.set = {}; refresh(); });
  for (const id of ["by", "layout"]) at(id).addEventListener("change", () => { state[id] = at(id).value; refresh(); });
  submit("others", () => {
    state.other = at("other").value.trim() ? { name: at("other").value.trim() } : null;
    state.other_set = {};
    refresh();
  });
  click("pin", () => {
    state.other = state.model;
    state.other_set = { ...state.set };
    at("other").value = state.model.name ?? state.model.file;
    refresh();
  });
  click("alone", () => { state.other = null; at("other").value = ""; refresh(); });
  submit("claims", () => { state.claim = at("claim").value.trim(); refresh(); });
  submit("texts", () => { state.text = at("text").value.trim() ? at("text").value : ""; refresh(); });
  click("link", () => copy(location.origin + location.pathname + fragment()));
  for (const kind of ["pointermove", "pointerdown"]) { // a tap does not move
    document.addEventListener(kind, (event) => {
      const title = event.target.closest?.("svg.picture rect")?.querySelector("title");
      if (title) at("pointed").textContent = title.textContent;
    });
  }
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      document.body.classList.toggle("dropping", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
    });
  }
  addEventListener("hashchange", () => { if (restore(location.hash)) { fill(); refresh(); } });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; refresh(); } });
}

start = await (await fetch("start")).json();
at("presets").append(...start.presets.map((name) => new Option(name, name)));
if (!restore(location.hash)) Object.assign(state, { model: { name: start.source }, set: start.set });
if (matchMedia("(max-width: 860px)").matches) for (const id of ["sizes", "running"]) at(id).open = false;
fill();
listen();
if (state.model.file && !("config" in state.model || "header" in state.model)) {
  complain(`${state.model.file} is too large to put in a link; drop the file again.`);
} else {
  await refresh();
}
