// The page's state, and the link that restores it. A URL's fragment is never sent to a server.

export const state = {
  model: { name: "" }, set: {}, // arguments of `count`
  other: null, other_set: {}, claim: "", text: "", // compared with
  by: "role", layout: "diagram", unfolded: false, run: {}, serve: {}, devices: false, // drawing and run options
  story: "", // which is shown
};
const INITIAL = structuredClone(state);
const LONGEST_HEADER = 50_000; // characters of a dropped header in a link; a larger file must be dropped again
const LONGEST_TEXT = 50_000; // characters of a derivation in a link
const stories = new Map(); // their states by name

export function knowStories(list) {
  for (const { name, state: own } of list) stories.set(name, { ...structuredClone(INITIAL), ...own, story: name });
}

// `#model=gpt2` names a model, `#story=163m` a story; a state with more in it is JSON.
export function restore(fragment) {
  if (fragment.length < 2) return false;
  const linked = /^#(model|story)=/.test(fragment) ? named(fragment) : parsed(fragment);
  if (linked?.model === undefined) return false;
  for (const key of Object.keys(state)) {
    const kind = key === "other" ? "object" : typeof state[key];
    const given = typeof linked[key] === kind && (linked[key] !== null || key === "other");
    state[key] = structuredClone(given ? linked[key] : INITIAL[key]);
  }
  return true;
}

function named(fragment) {
  const given = new URLSearchParams(fragment.slice(1));
  if (given.has("story")) return stories.get(given.get("story").trim());
  return { ...INITIAL, model: { name: given.get("model").trim() } };
}

function parsed(fragment) {
  try {
    return JSON.parse(decodeURIComponent(fragment.slice(1)));
  } catch {
    return undefined;
  }
}

// Whether two states are the same, in whatever order their keys are.
const written = (value) => JSON.stringify(value, (_, one) => (
  one && typeof one === "object" && !Array.isArray(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));
const same = (one, other) => written(one) === written(other);

// Whether the state is a model by its name, and nothing else.
export const isNamed = () => Object.keys(state.model).join() === "name" && same(state, { ...INITIAL, model: state.model });

// Whether the state is still the one that the story tells of.
export const isStory = () => stories.has(state.story) && same(state, stories.get(state.story));

export function fragment() {
  if (isNamed()) return `#model=${encodeURIComponent(state.model.name).replaceAll("%2F", "/")}`;
  if (isStory()) return `#story=${state.story}`;
  const { header, ...rest } = state.model;
  const model = header === undefined || header.length < LONGEST_HEADER ? state.model : rest;
  const text = state.text.length < LONGEST_TEXT ? state.text : "";
  return "#" + encodeURIComponent(JSON.stringify({ ...state, model, text }));
}

// One request at a time: states in between are skipped while a slider moves.
export const request = (wanted, width) => ({ ...state, other: state.other ?? {}, wanted, width });
