// What is pointed at, by mouse, touch or keyboard: its words below the count, and everywhere on the page the same part
// of the model is lit. The server's markup says what belongs together: `data-part` is a role, `data-tensor` names tensors.

const MOVES = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

// `say` shows the words, `fold` unfolds or folds the blocks.
export function link(page, say, fold) {
  let shown = null; // the element that is pointed at

  function point(element) {
    if (element === shown) return;
    shown = element;
    const title = worded(element);
    if (title) say(title.textContent);
    light(page, element);
  }

  page.addEventListener("pointermove", ({ target, pointerType }) => { if (pointerType !== "touch") point(target.closest("[data-part]") ?? drawn(target)); });
  page.addEventListener("pointerdown", ({ target }) => point(target.closest("[data-part]") ?? drawn(target))); // a tap does not move
  page.addEventListener("pointerleave", () => point(null));
  page.addEventListener("click", ({ target }) => { if (target.closest("[data-fold]")) fold(); });
  page.addEventListener("focusin", ({ target }) => { if (target.matches("svg.diagram:focus-visible")) point(parts(target)[0]); });
  page.addEventListener("focusout", ({ target }) => { if (target.matches("svg.diagram")) point(null); });
  page.addEventListener("keydown", (event) => {
    if (!event.target.matches("svg.diagram")) return;
    const all = parts(event.target), at = all.indexOf(shown);
    if (event.key in MOVES) point(all[Math.max(0, Math.min(all.length - 1, at + MOVES[event.key]))]);
    else if (event.key === "Home") point(all[0]);
    else if (event.key === "End") point(all.at(-1));
    else if ((event.key === "Enter" || event.key === " ") && shown?.dataset.fold !== undefined) fold();
    else return;
    event.preventDefault();
  });
}

const parts = (picture) => [...picture.querySelectorAll(".part, [data-fold]")];

// An element of a picture that says what it is: the innermost one.
function drawn(target) {
  const one = target.closest("svg.picture *");
  return one && worded(one) ? one : null;
}

function worded(element) {
  for (let one = element; one && !one.matches("svg"); one = one.parentElement) {
    const title = one.querySelector(":scope > title");
    if (title) return title;
  }
  return null;
}

// Light all of an element's part, and more strongly what has a tensor in common with it.
function light(page, element) {
  for (const one of page.querySelectorAll(".linked, .same")) one.classList.remove("linked", "same");
  element?.classList.add("same");
  const roles = element?.dataset.part?.split(" ") ?? [];
  page.classList.toggle("linking", roles.length > 0);
  if (!roles.length) return;
  const tensors = new Set(element.closest("[data-tensor]")?.dataset.tensor.split(" "));
  for (const one of page.querySelectorAll("[data-part], [data-tensor]")) {
    const same = one === element || one.dataset.tensor?.split(" ").some((name) => tensors.has(name));
    if (same || one.dataset.part?.split(" ").some((role) => roles.includes(role))) one.classList.add("linked");
    if (same) one.classList.add("same");
  }
}
