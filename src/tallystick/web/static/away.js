// Downloads of the shown answers, and the command lines that give the same answers.

import { element } from "./controls.js";

const SCALE = 2; // PNG pixels per pixel of the picture

export function download(name, type, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const svgOf = (picture) => new XMLSerializer().serializeToString(picture);

async function pngOf(picture) {
  const url = URL.createObjectURL(new Blob([svgOf(picture)], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = element("canvas", { width: picture.getAttribute("width") * SCALE, height: picture.getAttribute("height") * SCALE });
  const drawn = canvas.getContext("2d");
  drawn.fillStyle = "white";
  drawn.fillRect(0, 0, canvas.width, canvas.height);
  drawn.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

// `answers` holds the server's last answers; `csv` requests the table.
export function showAway(place, names, answers, csv, copy) {
  place.replaceChildren(...names.filter((name) => answers[name]?.command).map((name) => {
    const answer = answers[name];
    const button = (words, act) => {
      const made = element("button", { type: "button", "aria-label": `${words}: ${name}` }, words);
      made.addEventListener("click", act);
      return made;
    };
    const picture = () => document.querySelector(`#${name} svg.picture`);
    const buttons = [
      button("Copy command", () => copy(answer.command)),
      button("Copy Python", () => copy(answer.python)),
      button("JSON", () => download(`${name}.json`, "application/json", JSON.stringify(answer.answer, null, 2))),
    ];
    if (name === "count") buttons.push(button("CSV", async () => download("count.csv", "text/csv", await csv())));
    if (picture()) {
      buttons.push(button("SVG", () => download(`${name}.svg`, "image/svg+xml", svgOf(picture()))));
      buttons.push(button("PNG", async () => download(`${name}.png`, "image/png", await pngOf(picture()))));
    }
    return element("div", { class: "away", "data-name": name },
      element("h3", {}, name),
      element("pre", { tabindex: 0, "aria-label": `command line: ${name}` }, answer.command),
      element("pre", { tabindex: 0, "aria-label": `Python: ${name}` }, answer.python),
      element("div", { class: "choices" }, ...buttons));
  }));
}
