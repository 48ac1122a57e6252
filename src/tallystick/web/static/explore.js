// The page: asks its answerer and shows the answers. It computes no numbers.

import { connect } from "./answerers.js";
import { showDefaults, showRun, showSizes } from "./controls.js";
import { showExports } from "./exports.js";
import { askWith, carried, dropped, isRepository, Refused, repository, setToken } from "./files.js";
import { onReturn, remember, step } from "./history.js";
import { link as follow } from "./link.js";
import { isText, modelOf, pasted } from "./models.js";
import { movement, sizeChanged } from "./motion.js";
import { fillServing, listenServing, slow } from "./serving.js";
import { fragment, isNamed, isStory, knowStories, request, restore, state } from "./state.js";
import { begin as beginStories, showStory } from "./stories.js";

const at = (id) => document.getElementById(id);
const ALWAYS = ["count", "strip", "formula", "ties", "memory", "compute"];
const LATER = ["fit", "serve", "devices"]; // these take longer, and are asked for when nothing moves
const NAMES = ["count", "strip", "formula", "ties", "memory", "fit", "devices", "serve", "compute", "compare", "reconcile", "check"];
const PAUSE = 150; // milliseconds without a change, until LATER are asked for
const NARROWEST = 280, WIDEST = 1100; // pixels of a picture
const LONGEST_ADDRESS = 200; // characters, in a picture
const WIDE = 720; // pixels of the page from which the wider of two pictures drawn in advance is shown
const scrolled = new WeakMap(); // how far each table is scrolled
const held = new Map(); // dropped files by the name in the state: a link cannot hold them
const embedded = new URLSearchParams(location.search).has("embed"); // in a page of the documentation: a story alone
let start, answerer, answers = {}, busy = false, again = false, wake;

function complain(words) {
  at("error").textContent = words ?? "";
  at("error").hidden = !words;
}

async function refresh() {
  again = busy;
  wake?.();
  if (busy) return;
  busy = true;
  do {
    again = false;
    const asked = { compare: state.other, reconcile: state.claim, check: state.text };
    const wanted = [...ALWAYS, ...Object.keys(asked).filter((name) => asked[name])];
    show(await ask(request(wanted, width())));
    remember();
    document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
    if (!again) await refreshLater();
  } while (again);
  busy = false;
}

async function refreshLater() {
  const wanted = slow();
  for (const name of LATER) {
    if (!wanted.includes(name)) at(name).replaceChildren();
    else at(name).classList.add("stale");
  }
  if (!wanted.length || !at("error").hidden) return;
  await new Promise((done) => { wake = done; setTimeout(done, PAUSE); });
  for (const name of wanted) { // one by one: the list of devices takes longest
    if (again) return;
    const reply = await ask(request([name], width()));
    if (!again) put(reply.error ? { [name]: reply } : reply, [name]);
  }
}

const width = () => Math.max(NARROWEST, Math.min(WIDEST, Math.floor(at("count").clientWidth)));

// The files of a model, if it has any: of the hub's repositories or dropped.
async function filesOf(model) {
  if (model?.dropped !== undefined) {
    if (!held.has(model.dropped)) throw new Error(`The files of ${model.dropped} are not in the link: drop them again.`);
    return held.get(model.dropped);
  }
  const isKnown = !model?.name || model.name === start.source || start.presets.includes(model.name.toLowerCase());
  return isKnown || !isRepository(model.name) ? null : repository(model.name, start.hub);
}

async function ask(asked) {
  answerer ??= connect(start);
  try {
    const [model, other] = await Promise.all([filesOf(asked.model), filesOf(asked.other)]);
    return await askWith(answerer, asked, { ...(model && { model }), ...(other && { other }) });
  } catch (error) {
    at("access").hidden = !(error instanceof Refused);
    return { error: error.message };
  }
}

// A file's JSON, or null where it does not come whole: Python answers then.
async function fetched(address) {
  try {
    const reply = await fetch(address);
    return reply.ok ? await reply.json() : null;
  } catch {
    return null;
  }
}

// A preset or a story as the site was built with it, until Python has started.
async function showFirst() {
  const name = isStory() ? `story-${state.story}` : isNamed() ? state.model.name : null;
  if (!start.first?.includes(name)) return false;
  const answer = await fetched(`first/${name}${innerWidth < WIDE ? "-narrow" : ""}.json`);
  if (!answer) return false;
  if (document.body.dataset.shown === undefined && (isNamed() || isStory())) show(answer);
  document.body.dataset.first = "shown";
  return true;
}

function show(reply) {
  const whole = reply.error ?? reply.count.error;
  if (!whole) at("access").hidden = true;
  complain(whole);
  showStory(at("story"), at("stories"));
  for (const name of NAMES) at(name).classList.toggle("stale", Boolean(whole));
  if (whole) return;
  answers = Object.fromEntries(slow().filter((name) => answers[name]).map((name) => [name, answers[name]])); // until they follow
  put(reply, NAMES.filter((name) => reply[name] || !LATER.includes(name)));
  at("pointed").textContent = at("pointed").dataset.hint; // of the picture before
  at("total").textContent = at("count").querySelector("p").textContent;
  at("hold").textContent = state.other ? `Unpin ${nameOf(state.other)}` : "Pin";
  document.title = `${at("total").textContent} · tallystick`;
  showSizes(at("controls"), reply.count.controls, set);
  showDefaults(at("run"), reply.memory?.defaults);
}

// The answers' markup has all names escaped; the content security policy forbids scripts in it.
function put(reply, names) {
  Object.assign(answers, reply);
  const restores = names.map((name) => view(at(name))), move = movement(names.map(at)); // before anything changes, so that there is one layout
  for (const name of names) {
    const answer = reply[name];
    at(name).classList.remove("stale");
    if (!answer) at(name).replaceChildren();
    else if (answer.error) at(name).replaceChildren(sentence(answer.error));
    else at(name).replaceChildren(...new DOMParser().parseFromString(answer.html, "text/html").body.childNodes);
  }
  for (const restore of restores) restore();
  move();
  if (answers.count.answer) showExports(at("away"), NAMES, answers, { text: exported, copy, origin, complain }); // not drawn in advance
}

function sentence(words) {
  const made = document.createElement("p");
  made.className = "bad";
  made.textContent = words;
  return made;
}

// What is scrolled and focused in a place: gives the function that restores it in the new content.
function view(place) {
  const tops = [...place.querySelectorAll(".scroll")].map((one) => scrolled.get(one)); // asking each would lay out the page
  const focused = document.activeElement.matches("svg.diagram") && place.contains(document.activeElement);
  return () => {
    if (focused) place.querySelector("svg.diagram")?.focus();
    place.querySelectorAll(".scroll").forEach((one, number) => { if (tops[number]) one.scrollTop = tops[number]; });
  };
}

function set(key, value) {
  sizeChanged();
  if (value !== null) state.set[key] = value;
  refresh();
}

function choose(model) {
  step(() => {
    state.model = model;
    state.set = {};
    state.story = "";
  });
  at("name").value = nameOf(model);
  at("pasting").hidden = true;
  at("paste").setAttribute("aria-expanded", "false");
  refresh();
}

const nameOf = (model) => model.name ?? model.dropped ?? model.file ?? "";

// A config or one safetensors file fits in a link; other files stay in the page, and are read in slices.
async function open({ name, files }) {
  try {
    if (files.length === 1 && name === null && (isText(files[0]) || files[0].name.endsWith(".safetensors"))) {
      choose(await modelOf(files[0], start));
    } else if (files.length) {
      const source = name ?? (files.length === 1 ? files[0].name : "files");
      held.set(source, dropped(source, files));
      choose({ dropped: source });
    }
  } catch (error) {
    complain(error.message);
  }
}

// An answer as the library writes it: numbers of this page would be rounded to 53 bits.
async function exported(name, kind) {
  const reply = await ask({ ...request([kind], WIDEST), of: name });
  const error = reply.error ?? reply[kind].error;
  if (error) throw new Error(error);
  return reply[kind].text;
}

// What a picture is of: a file has no page around it.
function origin(name) {
  const section = at(name).closest("section").querySelector("h2").textContent;
  const address = link();
  const known = address.startsWith("http") && address.length < LONGEST_ADDRESS ? `${address}   ` : "";
  return { title: at("total").textContent, subtitle: name === "count" ? `${section}, by ${state.by}` : section, source: `${known}${answers[name].command}` };
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    at("said").textContent = "Copied.";
  } catch {
    at("said").textContent = text; // the clipboard is blocked: show the text for copying by hand
  }
}

// The public page's address: this page's own on the site, else the configured one.
const link = () => (start.answered_by === "browser" ? location.origin + location.pathname : start.public) + fragment();

// Set the fields from the state.
function fill() {
  at("name").value = nameOf(state.model);
  at("other").value = state.other ? nameOf(state.other) : "";
  for (const id of ["by", "layout", "claim", "text"]) at(id).value = state[id];
  showRun(at("run"), start.choices, state.run, changed);
  fillServing(start.choices);
}

// An option of the run that other fields show too.
function changed() {
  fillServing(start.choices);
  refresh();
}

function listen() {
  const submit = (id, act) => at(id).addEventListener("submit", (event) => { event.preventDefault(); act(); });
  const click = (id, act) => at(id).addEventListener("click", act);
  submit("models", () => (at("name").value.trim() ? choose({ name: at("name").value.trim() }) : refresh()));
  submit("pasting", () => {
    try {
      choose(pasted(at("config").value, start));
    } catch (error) {
      complain(error.message);
    }
  });
  at("name").addEventListener("focus", () => { // an empty field lists all presets
    at("name").placeholder = at("name").value;
    at("name").value = "";
  });
  at("name").addEventListener("blur", () => { at("name").value ||= nameOf(state.model); });
  click("paste", () => {
    at("pasting").hidden = !at("pasting").hidden;
    at("paste").setAttribute("aria-expanded", String(!at("pasting").hidden));
    if (!at("pasting").hidden) at("config").focus();
  });
  for (const id of ["file", "folder"]) {
    at(id).addEventListener("change", () => {
      const files = [...at(id).files].filter((file) => file.webkitRelativePath.split("/").length <= 2); // not of folders inside
      if (files.length) open({ name: id === "folder" ? files[0].webkitRelativePath.split("/")[0] : null, files });
      at(id).value = ""; // the same file may be chosen again
    });
  }
  submit("access", () => { setToken(at("token").value); refresh(); });
  click("reset", () => { step(() => { state.set = {}; }); refresh(); });
  for (const id of ["by", "layout"]) at(id).addEventListener("change", () => { state[id] = at(id).value; refresh(); });
  const compare = (other, other_set = {}) => {
    step(() => Object.assign(state, { other, other_set }));
    at("other").value = other ? nameOf(other) : "";
    refresh();
  };
  submit("others", () => compare(at("other").value.trim() ? { name: at("other").value.trim() } : null));
  click("pin", () => compare(state.model, { ...state.set }));
  click("alone", () => compare(null));
  click("hold", () => (state.other ? compare(null) : compare(state.model, { ...state.set })));
  submit("claims", () => { step(() => { state.claim = at("claim").value.trim(); }); refresh(); });
  submit("texts", () => { step(() => { state.text = at("text").value.trim() ? at("text").value : ""; }); refresh(); });
  listenServing(() => { showRun(at("run"), start.choices, state.run, changed); showDefaults(at("run"), answers.memory?.defaults); refresh(); });
  click("link", () => copy(link()));
  follow(document.querySelector("main"), (words) => { at("pointed").textContent = words; }, () => {
    state.unfolded = !state.unfolded;
    return refresh();
  });
  document.addEventListener("scroll", ({ target }) => { if (target !== document) scrolled.set(target, target.scrollTop); }, { capture: true, passive: true });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      document.body.classList.toggle("dropping", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) carried(event.dataTransfer).then(open);
    });
  }
  onReturn(() => { fill(); refresh(); });
  let before = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== before) { before = innerWidth; if (answerer) refresh(); } });
}

start = await (await fetch("start.json", { cache: "no-cache" })).json();
if (!embedded) answerer = connect(start);
document.body.classList.toggle("embedded", embedded);
knowStories(start.stories);
at("presets").append(...start.presets.map((name) => new Option(name, name)));
beginStories(start, at("stories"));
if (start.docs) Object.assign(at("docs"), { href: `${start.docs}index.html`, hidden: false });
if (!restore(location.hash)) Object.assign(state, { model: { name: start.source }, set: start.set });
at("whole").href = `./${location.hash}`;
if (matchMedia("(max-width: 860px)").matches) for (const id of ["sizes", "running"]) at(id).open = false;
fill();
listen();
if (state.model.file && !("config" in state.model || "header" in state.model)) {
  complain(`${state.model.file} is too large to put in a link; drop the file again.`);
} else {
  const first = showFirst();
  if (!embedded || !(await first)) await refresh(); // a story in a page starts Python when it is changed
}
if (start.offline && !embedded) navigator.serviceWorker?.register(start.offline); // after the first answer, which it would slow down
