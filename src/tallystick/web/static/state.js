// The page's state, and the link that restores it. A URL's fragment is never sent to a server.

export const state = {
  model: { name: "" }, set: {}, // arguments of `count`
  other: null, other_set: {}, claim: "", text: "", // compared with
  by: "role", layout: "treemap", run: {}, // drawing and run options
};
const LONGEST_HEADER = 50_000; // characters of a dropped header in a link; a larger file must be dropped again
const LONGEST_TEXT = 50_000; // characters of a derivation in a link

export function restore(fragment) {
  if (fragment.length < 2) return false;
  let linked;
  try {
    linked = JSON.parse(decodeURIComponent(fragment.slice(1)));
  } catch {
    return false;
  }
  if (linked?.model === undefined) return false;
  for (const key of Object.keys(state)) {
    const kind = key === "other" ? "object" : typeof state[key];
    if (typeof linked[key] === kind && (linked[key] !== null || key === "other")) state[key] = linked[key];
  }
  return true;
}

export function fragment() {
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
export async function ask(wanted, width) {
  const body = JSON.stringify({ ...state, other: state.other ?? {}, wanted, width });
  let reply;
  try {
    reply = await fetch("answers", { method: "POST", body, headers: { "content-type": "application/json" } });
  } catch {
    return { error: "The server has stopped: start tallystick explore again." };
  }
  return reply.ok ? reply.json() : { error: await reply.text() };
}
