// What can be taken away: each answer as JSON, CSV or a picture, and the command line and Python that give it.

import { element } from "./controls.js";
import { picture, png } from "./picture_files.js";

const TYPES = { json: "application/json", csv: "text/csv" };

function download(name, type, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// `answers` are the last ones; `text` asks for one as JSON or CSV, and `origin` says what a picture is of.
export function showExports(place, names, answers, { text, copy, origin, complain }) {
  place.replaceChildren(...names.filter((name) => answers[name]?.command).map((name) => {
    const button = (words, act) => {
      const made = element("button", { type: "button", "aria-label": `${words}: ${name}` }, words);
      made.addEventListener("click", async () => {
        try {
          await act();
        } catch (error) {
          complain(error.message);
        }
      });
      return made;
    };
    const drawn = () => document.querySelector(`#${name} svg.picture`);
    const buttons = [
      button("Copy command", () => copy(answers[name].command)),
      button("Copy Python", () => copy(answers[name].python)),
      ...Object.entries(TYPES).map(([kind, type]) => button(kind.toUpperCase(), async () => download(`${name}.${kind}`, type, await text(name, kind)))),
    ];
    if (drawn()) {
      buttons.push(button("SVG", () => download(`${name}.svg`, "image/svg+xml", picture(drawn(), origin(name)))));
      buttons.push(button("PNG", async () => download(`${name}.png`, "image/png", await png(drawn(), origin(name)))));
    }
    return element("div", { class: "away", "data-name": name },
      element("h3", {}, document.getElementById(name).closest("section").querySelector("h2").textContent),
      element("pre", { tabindex: 0, "aria-label": `command line: ${name}` }, answers[name].command),
      element("pre", { tabindex: 0, "aria-label": `Python: ${name}` }, answers[name].python),
      element("div", { class: "choices" }, ...buttons));
  }));
}
