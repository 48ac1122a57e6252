// Stories: a question, a state of the page that answers it, and three sentences about what is shown.

import { element } from "./controls.js";
import { isStory, state } from "./state.js";

let list = [], docs = null, order = [];

export function begin(start, links) {
  list = start.stories;
  docs = start.docs;
  order = [...document.querySelectorAll("main > section:not(#story)")];
  links.append(...list.map((one) => element("a", { href: `#story=${one.name}`, "data-story": one.name }, one.label)));
}

// Shows the story of the state, and its answers before all others.
export function showStory(place, links) {
  const story = list.find((one) => one.name === state.story);
  for (const link of links.children) {
    if (link.dataset.story !== story?.name) {
      link.removeAttribute("aria-current");
    } else if (!link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      links.scrollLeft = link.offsetLeft - links.offsetLeft - (links.clientWidth - link.offsetWidth) / 2;
    }
  }
  if (place.dataset.story !== (story?.name ?? "")) {
    place.dataset.story = story?.name ?? "";
    place.replaceChildren(...(story ? sentences(story) : []));
    arrange(place, story?.sections ?? []);
  }
  place.hidden = !story;
  const changed = place.querySelector(".changed");
  if (changed) changed.hidden = isStory();
}

function sentences(story) {
  const again = element("a", { href: `#story=${story.name}` }, "Show the story's model again");
  const changed = element("p", { class: "changed note", hidden: "" }, "You changed the settings: the figures above are of the story's. ", again);
  const read = docs && element("p", { class: "note" }, element("a", { href: `${docs}${story.page}.html`, target: "_top" }, "Read more in the documentation"));
  return [element("h2", { id: "h-story" }, story.title), ...story.sentences.map((one) => element("p", {}, one)), changed, ...(read ? [read] : [])];
}

// Moves the sections of a story up, and all others back to where they were.
function arrange(place, names) {
  const first = names.map((name) => document.getElementById(name).closest("main > section"));
  const anchor = document.getElementById("before-sections");
  anchor.after(...first, ...order.filter((one) => !first.includes(one)));
  for (const one of order) one.classList.toggle("featured", first.includes(one));
}
