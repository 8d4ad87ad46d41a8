// The settings: a small form made from the list of methods. What is left empty is the method's own.

import { byId, make } from "./dom.js";
import { METHODS, readSettings } from "./state.js";

const FIELDS = {
  seed: { label: "Seed", type: "number", min: 0, step: 1 },
  particles: { label: "Particles", type: "number", min: 1, step: 1 },
  outer_steps: { label: "Outer steps", type: "number", min: 1, step: 1 },
  noise: { label: "Noise σ", type: "number", min: 0, step: "any" },
  beta: { label: "Tilt β", type: "number", min: 0, step: "any" },
  resample_below: { label: "Resample below", type: "number", min: 0, max: 1, step: "any" },
  guide: { label: "Guide", type: "text" },
};

/** Build it; `changed(settings)` is called after every change. */
export function buildForm(form, changed) {
  const method = make("select", { name: "method" },
    ...Object.keys(METHODS).map((name) => make("option", { value: name, text: name })));
  const fields = Object.entries(FIELDS).map(([name, { label, ...attributes }]) =>
    make("label", {}, make("span", { text: label }),
      make("input", { name, placeholder: name === "seed" ? "0" : "default", ...attributes })));
  form.append(
    make("label", {}, make("span", { text: "Method" }), method), ...fields,
    make("label", { class: "check" },
      make("input", { name: "rules", type: "checkbox", value: "true" }), make("span", { text: "Let the rules decide" })),
    make("label", { id: "token-field", hidden: true }, make("span", { text: "Access token" }),
      make("input", { name: "token", type: "password", autocomplete: "off" })));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const settings = readSettings(new FormData(form));
    allow(form, settings.method);
    changed(settings);
  });
}

/** Put settings into the form. */
export function fillForm(form, settings) {
  for (const element of form.elements) {
    const value = settings[element.name];
    if (element.type === "checkbox") element.checked = Boolean(value);
    else if (element.name !== "token") element.value = value === undefined || (element.name === "seed" && !value) ? "" : value;
  }
  allow(form, settings.method);
}

/** Only what the method has can be set. */
function allow(form, method) {
  for (const element of form.elements) {
    if (element.name in FIELDS || element.name === "rules") {
      element.disabled = element.name !== "seed" && !METHODS[method].includes(element.name);
    }
  }
}

/** Show the field for the token, where the server asked for one. */
export function askToken() {
  byId("settings").open = true;
  byId("token-field").hidden = false;
  byId("token-field").querySelector("input").focus();
}
