// The fields of a device and of a serving engine. The device is that of the run.

import { element } from "./controls.js";
import { state } from "./state.js";

const FIELDS = [ // key, label, kind, and the default
  ["max_model_len", "longest request", "number", "the config's"], ["tp", "tensor-parallel size", "number", "1"],
  ["quantization", "quantization", "text", "none"], ["kv_cache_dtype", "KV cache dtype", "text", "auto"],
  ["input_tokens", "input tokens", "number", "none"], ["output_tokens", "output tokens", "number", "none"],
];
const ENGINES = { "": "none", vllm: "vLLM", sglang: "SGLang", "llama.cpp": "llama.cpp" };
const at = (id) => document.getElementById(id);

// The answers that the fields ask for.
export function slow() {
  const asked = { fit: state.run.device, serve: state.serve.engine, devices: state.devices };
  return Object.keys(asked).filter((name) => asked[name]);
}

const option = ([value, words]) => element("option", { value }, words);
const labelled = (words, field) => element("label", {}, `${words} `, field);

export function fillServing(choices) {
  if (!at("serve-engine")) build(choices);
  for (const select of document.querySelectorAll("select.device")) select.value = state.run.device ?? "";
  at("all-devices").checked = state.devices;
  at("serve-engine").value = state.serve.engine ?? "";
  for (const [key] of FIELDS) {
    const field = at(`serve-${key}`);
    if (document.activeElement !== field) field.value = state.serve[key] ?? "";
    field.closest("label").hidden = !state.serve.engine;
  }
}

function build(choices) {
  const engine = element("select", { id: "serve-engine" }, ...Object.entries(ENGINES).map(option));
  const device = element("select", { id: "serve-device", class: "device" });
  const fields = FIELDS.map(([key, words, kind, placeholder]) => labelled(words,
    element("input", { id: `serve-${key}`, type: kind, autocomplete: "off", placeholder, ...(kind === "number" && { min: 1 }) })));
  at("serving").append(labelled("Engine", engine), labelled("Device", device), ...fields);
  const devices = [["", "none"], ...choices.device.map((name) => [name, name])];
  for (const select of document.querySelectorAll("select.device")) select.append(...devices.map(option));
}

// `changed` is called after each change.
export function listenServing(changed) {
  const put = (values, key, value) => { if (value === "") delete values[key]; else values[key] = value; };
  const on = (field, act) => field.addEventListener("change", () => { act(); fillServing(); changed(); });
  for (const select of document.querySelectorAll("select.device")) on(select, () => put(state.run, "device", select.value));
  on(at("all-devices"), () => { state.devices = at("all-devices").checked; });
  on(at("serve-engine"), () => put(state.serve, "engine", at("serve-engine").value));
  for (const [key, , kind] of FIELDS) {
    const field = at(`serve-${key}`);
    on(field, () => put(state.serve, key, kind === "number" && field.value !== "" ? Number(field.value) : field.value));
  }
}
