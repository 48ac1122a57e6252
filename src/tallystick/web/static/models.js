// Models by name, pasted or dropped. Only the header of a safetensors file is read, never the weights.

const LENGTH_BYTES = 8;

const TEXTS = [".json", ".toml", ".yaml", ".yml", ".txt", ".py"]; // endings of configs

export const isText = (file) => TEXTS.some((ending) => file.name.toLowerCase().endsWith(ending)) && !file.name.endsWith(".index.json");

export async function modelOf(file, start) {
  if (file.name.endsWith(".safetensors")) {
    if (file.size < LENGTH_BYTES) throw new Error(`${file.name} is too short to be a safetensors file.`);
    const first = await file.slice(0, LENGTH_BYTES).arrayBuffer();
    const length = Number(new DataView(first).getBigUint64(0, true));
    if (length > file.size - LENGTH_BYTES) throw new Error(`${file.name} is truncated, or not a safetensors file.`);
    if (length > start.most_bytes / 2) throw new Error(`${file.name}: the header is too long for the page; use the command line.`);
    const header = await file.slice(LENGTH_BYTES, LENGTH_BYTES + length).text();
    return { header, bytes: file.size - LENGTH_BYTES - length, file: file.name };
  }
  if (file.size > start.most_config) throw new Error(tooLong(file.name, file.size, start));
  return { config: await file.text(), file: file.name };
}

export function pasted(text, start) {
  if (!text.trim()) throw new Error("There is no text to read: paste a config.json, or a dictionary of sizes as books write it.");
  if (text.length > start.most_config) throw new Error(tooLong("The text", text.length, start));
  return { config: text, file: "config.json" };
}

function tooLong(what, size, start) {
  return `${what} has ${size.toLocaleString("en")} characters, more than the ${start.most_config.toLocaleString("en")} allowed for a config.`;
}
