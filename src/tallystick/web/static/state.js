// The page's state, and the link that restores it. A URL's fragment is never sent to a server.

export const state = {
  model: { name: "" }, set: {}, // arguments of `count`
  other: null, other_set: {}, claim: "", text: "", // compared with
  by: "role", layout: "treemap", run: {}, // drawing and run options
};
const INITIAL = structuredClone(state);
const LONGEST_HEADER = 50_000; // characters of a dropped header in a link; a larger file must be dropped again
const LONGEST_TEXT = 50_000; // characters of a derivation in a link

// `#model=gpt2` names a model; a state with more in it is JSON.
export function restore(fragment) {
  if (fragment.length < 2) return false;
  const linked = fragment.startsWith("#model=") ? named(fragment) : parsed(fragment);
  if (linked?.model === undefined) return false;
  for (const key of Object.keys(state)) {
    const kind = key === "other" ? "object" : typeof state[key];
    if (typeof linked[key] === kind && (linked[key] !== null || key === "other")) state[key] = linked[key];
  }
  return true;
}

function named(fragment) {
  const name = new URLSearchParams(fragment.slice(1)).get("model").trim();
  return { ...structuredClone(INITIAL), model: { name } };
}

function parsed(fragment) {
  try {
    return JSON.parse(decodeURIComponent(fragment.slice(1)));
  } catch {
    return undefined;
  }
}

// Whether the state is a model by its name, and nothing else.
export function isNamed() {
  const { model, ...rest } = state;
  return Object.keys(model).join() === "name" && JSON.stringify({ ...INITIAL, model }) === JSON.stringify({ ...INITIAL, ...rest, model });
}

export function fragment() {
  if (isNamed()) return `#model=${encodeURIComponent(state.model.name).replaceAll("%2F", "/")}`;
  const { header, ...rest } = state.model;
  const model = header === undefined || header.length < LONGEST_HEADER ? state.model : rest;
  const text = state.text.length < LONGEST_TEXT ? state.text : "";
  return "#" + encodeURIComponent(JSON.stringify({ ...state, model, text }));
}

let waiting;
export function remember() {
  clearTimeout(waiting); // browsers reject address changes at every slider movement
  waiting = setTimeout(() => history.replaceState(null, "", fragment()), 200);
}

// One request at a time: states in between are skipped while a slider moves.
export const request = (wanted, width) => ({ ...state, other: state.other ?? {}, wanted, width });
