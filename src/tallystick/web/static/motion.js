// Pictures that change move from the old one to the new, unless the reader wants less motion.

const TIME = { duration: 180, easing: "ease-out" };
const QUICK = 300; // milliseconds: the steps of a dragged slider are the movement
const MOST = 250; // moved elements; more would not be smooth
const MOVED = "svg.picture rect, svg.picture text";
const SIDES = ["x", "y", "width", "height"];

const still = matchMedia("(prefers-reduced-motion: reduce)");
let last = -Infinity, quick = false;

// A slider or a field of a size was changed.
export function sizeChanged() {
  const now = performance.now();
  quick = now - last < QUICK;
  last = now;
}

// Takes where all is in some places; gives the function that moves it to where it then is.
export function movement(places) {
  if (still.matches || quick) return () => {};
  const before = places.map((place) => new Map(keyed(place).map(([key, one]) => [key, sides(one)])));
  return () => places.forEach((place, number) => { if (before[number].size) move(place, before[number]); });
}

function move(place, before) {
  for (const [key, one] of keyed(place)) {
    const old = before.get(key), now = sides(one);
    if (!old) one.animate([{ opacity: 0 }, { opacity: 1 }], TIME);
    else if (one.matches("rect")) one.animate([lengths(old), lengths(now)], TIME);
    else if (old.x !== now.x || old.y !== now.y) {
      one.animate([{ transform: `translate(${old.x - now.x}px, ${old.y - now.y}px)` }, { transform: "none" }], TIME);
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

// As it is drawn: computed styles would make the browser work out the page's again.
const sides = (one) => Object.fromEntries(SIDES.map((side) => [side, Number(one.getAttribute(side))]));
const lengths = (sides) => Object.fromEntries(SIDES.map((side) => [side, `${sides[side]}px`]));
