// Sliders for config keys, and fields for run options. The server defines the sliders and their ranges.

const RUN = [ // key, label, and the only mode that has it
  ["mode", "mode"], ["dtype", "weight dtype"], ["batch", "batch size"], ["sequence", "sequence length"],
  ["kv_dtype", "KV cache dtype", "inference"], ["attention", "attention"],
  ["optimizer", "optimizer", "training"], ["precision", "precision", "training"], ["recompute", "activation checkpointing", "training"],
  ["loss", "loss", "training"], ["lora", "LoRA rank", "training"], ["dp", "data-parallel ranks", "training"],
  ["zero", "ZeRO stage", "training"], ["tp", "tensor-parallel ranks"], ["pp", "pipeline stages"],
  ["ep", "expert-parallel ranks"], ["device", "device"],
];

export function element(name, attributes = {}, ...inner) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

// Rows are kept while the model has the same keys, so that a dragged slider is not replaced.
export function showSizes(place, controls, change) {
  const keys = controls.map((one) => one.key).join();
  if (place.dataset.keys !== keys) {
    place.dataset.keys = keys;
    const rows = (common) => controls.filter((one) => one.common === common).map((one) => row(one, change));
    const [main, rest] = [rows(true), rows(false)];
    const more = rest.length > 2 && element("details", { id: "more-sizes" }, element("summary", {}, "More sizes"), ...rest);
    place.replaceChildren(...main, ...(more ? [more] : rest));
  }
  for (const one of controls) place.querySelector(`[data-key="${CSS.escape(one.key)}"]`).update(one);
  if (!controls.length) place.replaceChildren(element("p", { class: "note" }, "Sliders need a config; this is a checkpoint."));
}

// A key breaks after its dots and underscores.
const breakable = (key) => key.split(/(?<=[._])/).flatMap((part) => [part, element("wbr")]);

function row(control, change) {
  const id = `set-${control.key}`;
  const label = element("label", { for: id }, control.word, " ", element("small", {}, ...breakable(control.key)));
  const made = element("div", { class: "control", "data-key": control.key }, label);
  if (!control.stops.length) {
    const box = element("input", { type: "checkbox", id });
    box.addEventListener("change", () => change(control.key, box.checked));
    made.append(box);
    made.update = (now) => { box.checked = now.value; };
    return made;
  }
  let stops = control.stops;
  const exact = element("input", { type: "number", id, min: 1 });
  const slider = element("input", { type: "range", min: 0, "aria-label": `${control.word}, by steps` });
  exact.addEventListener("change", () => { if (exact.value) change(control.key, Number(exact.value)); });
  slider.addEventListener("input", () => {
    exact.value = stops[slider.value];
    slider.setAttribute("aria-valuetext", exact.value);
    change(control.key, stops[slider.value]);
  });
  made.append(exact, slider);
  made.update = (now) => {
    if (document.activeElement !== exact) exact.value = now.value;
    if (document.activeElement === slider) return; // keep its stops while it is dragged
    stops = now.stops;
    slider.hidden = stops.length < 2;
    slider.max = stops.length - 1;
    slider.value = stops.indexOf(now.value);
    slider.setAttribute("aria-valuetext", now.value);
  };
  slider.addEventListener("blur", () => change(control.key, null)); // set the new stops
  return made;
}

export function showRun(place, choices, run, change) {
  const rows = RUN.map(([key, words, mode]) => {
    const id = `run-${key}`;
    const made = element("div", { class: "control", "data-mode": mode ?? "" }, element("label", { for: id }, words));
    const field = key in choices
      ? element("select", { id }, ...(key === "mode" ? [] : [element("option", { value: "" }, "default")]),
        ...choices[key].map((one) => element("option", { value: one }, String(one))))
      : element("input", { type: "number", id, min: 1, placeholder: "default" });
    const numeric = field.type === "number" || key === "zero";
    field.value = run[key] ?? (key === "mode" ? choices.mode[0] : "");
    field.addEventListener(key in choices ? "change" : "input", () => {
      if (field.value === "") delete run[key];
      else run[key] = numeric ? Number(field.value) : field.value;
      if (key === "mode") toMode(place, run);
      change();
    });
    made.append(field);
    return made;
  });
  place.replaceChildren(...rows);
  toMode(place, run);
}

// Say what an option is that is not given.
export function showDefaults(place, defaults) {
  for (const [key, value] of Object.entries(defaults ?? {})) {
    const field = place.querySelector(`#run-${key}`);
    if (field instanceof HTMLInputElement) field.placeholder = value;
    else if (field && !field.options[0].value) {
      field.options[0].textContent = `default: ${String(value).includes(", ") ? "mixed" : value}`;
      field.title = `default: ${value}`;
    }
  }
}

// Options of the other mode are left out.
function toMode(place, run) {
  const now = run.mode ?? "inference";
  for (const one of place.children) {
    one.hidden = one.dataset.mode !== "" && one.dataset.mode !== now;
    const field = one.lastElementChild;
    if (one.hidden && field.value !== "") {
      field.value = "";
      delete run[field.id.slice("run-".length)];
    }
  }
}
