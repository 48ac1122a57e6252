// Back and forward: another model, story or question is a new step of the browser's history; a moved slider is not.

import { fragment, restore } from "./state.js";

const PAUSE = 200; // milliseconds: browsers reject address changes at every slider movement
let waiting;

function write() {
  clearTimeout(waiting);
  waiting = undefined;
  history.replaceState(null, "", fragment());
}

// Puts the state into the address of the present step.
export function remember() {
  clearTimeout(waiting);
  waiting = setTimeout(write, PAUSE);
}

// Changes the state, as a new step.
export function step(change) {
  if (waiting !== undefined) write(); // the step before keeps its last state
  change();
  if (fragment() !== location.hash) history.pushState(null, "", fragment());
}

// `act` shows the state of a step that the user went to, or of an address that was typed.
export function onReturn(act) {
  addEventListener("popstate", () => {
    clearTimeout(waiting);
    waiting = undefined;
    if (restore(location.hash)) act();
  });
}
