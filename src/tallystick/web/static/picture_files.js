// Pictures as files of their own, with a title above and the source below, in light colours.

const SVG = "http://www.w3.org/2000/svg";
const SCALE = 2; // PNG pixels per pixel of the picture
const MARGIN = 16, LEADING = 1.35;
const INK = "#1c1e21", QUIET = "#5a6068", FONT = "system-ui, sans-serif";

function svg(name, attributes, ...inner) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

const ruler = document.createElement("canvas").getContext("2d");

// The lines of a text that fit a width; a word that is too long, such as a link, is broken.
function folded(text, width, size, weight) {
  ruler.font = `${weight} ${size}px ${FONT}`;
  const fits = (line) => ruler.measureText(line).width <= width;
  const lines = [];
  let line = "";
  for (let word of text.split(" ")) {
    if (line && !fits(`${line} ${word}`)) { lines.push(line); line = ""; }
    line = line ? `${line} ${word}` : word;
    while (!fits(line)) {
      let end = line.length - 1;
      while (end > 1 && !fits(line.slice(0, end))) end -= 1;
      lines.push(line.slice(0, end));
      line = line.slice(end);
    }
  }
  return line ? [...lines, line] : lines;
}

// Lines of text from `top` on, and where they end.
function block(text, top, width, { size, weight = 400, fill = INK }) {
  let y = top;
  const lines = folded(text, width, size, weight).map((line) => {
    y += size * LEADING;
    return svg("text", { x: MARGIN, y: y - size * 0.3, "font-size": size, "font-weight": weight, fill }, line);
  });
  return [lines, y];
}

function whole(drawn, { title, subtitle, source }) {
  const width = Number(drawn.getAttribute("width")), height = Number(drawn.getAttribute("height"));
  const [first, end] = block(title, MARGIN, width, { size: 18, weight: 600 });
  const [second, top] = block(subtitle, end, width, { size: 13, fill: QUIET });
  const inner = drawn.cloneNode(true);
  for (const [key, value] of Object.entries({ x: MARGIN, y: top + 12, width, height })) inner.setAttribute(key, value);
  const [last, bottom] = block(source, top + height + 22, width, { size: 11, fill: QUIET });
  const size = { width: width + 2 * MARGIN, height: Math.ceil(bottom + MARGIN) };
  const ground = svg("rect", { ...size, fill: "white" });
  const words = svg("g", { "font-family": FONT }, ...first, ...second, ...last);
  return svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": title }, ground, words, inner);
}

// The picture as the text of an SVG file.
export const picture = (drawn, origin) => new XMLSerializer().serializeToString(whole(drawn, origin));

export async function png(drawn, origin) {
  const made = whole(drawn, origin);
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(made)], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = made.getAttribute("width") * SCALE;
  canvas.height = made.getAttribute("height") * SCALE;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}
