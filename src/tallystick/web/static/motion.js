// Pictures that change move from the old one to the new, unless the reader wants less motion.

const TIME = { duration: 180, easing: "ease-out" };
const MOST = 250; // moved elements; more would not be smooth
const MOVED = "svg.picture rect:not([data-state] rect), svg.picture text"; // without single experts
const SIDES = ["x", "y", "width", "height"];

const still = matchMedia("(prefers-reduced-motion: reduce)");

// Where each box and word of the pictures is now, in the middle of a movement too.
export function positions(place) {
  const found = new Map();
  if (still.matches) return found;
  for (const [key, one] of keyed(place)) found.set(key, one.matches("rect") ? sides(one) : spot(one));
  return found;
}

export function move(place, before) {
  if (!before.size) return;
  for (const [key, one] of keyed(place)) {
    const old = before.get(key);
    if (!old) one.animate([{ opacity: 0 }, { opacity: 1 }], TIME);
    else if (one.matches("rect")) one.animate([old, sides(one)], TIME);
    else {
      const now = spot(one);
      if (old.x !== now.x || old.y !== now.y) one.animate([{ transform: `translate(${old.x - now.x}px, ${old.y - now.y}px)` }, { transform: "none" }], TIME);
    }
  }
}

// The same box has the same part, tensors and class, and the same place among those with them.
function keyed(place) {
  const counts = new Map(), found = [];
  const all = place.querySelectorAll(MOVED);
  if (all.length > MOST) return found;
  for (const one of all) {
    const part = one.closest("[data-part]")?.dataset ?? {};
    const name = [one.ownerSVGElement.classList, one.localName, one.classList, part.part, part.tensor, part.layer].join("|");
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    found.push([`${name}|${count}`, one]);
  }
  return found;
}

function sides(rect) {
  const style = getComputedStyle(rect);
  return Object.fromEntries(SIDES.map((side) => [side, style[side]]));
}

function spot(text) {
  const moved = new DOMMatrix(getComputedStyle(text).transform);
  return { x: Number(text.getAttribute("x")) + moved.e, y: Number(text.getAttribute("y")) + moved.f };
}
