// The form of the settings, made from the server's table. An empty field is the method's default.

import { byId, make } from "./dom.js";
import { SEED, allSettings, methodWords, methods, readSettings, settingsOf } from "./state.js";

/** Build it; `changed(settings)` is called after every change. */
export function buildForm(form, changed) {
  const options = methods().map((name) => make("option", { value: name, text: methodWords(name) }));
  form.append(
    make("label", { class: "whole" }, make("span", { text: "Method" }), make("select", { name: "method" }, ...options)),
    ...[SEED, ...allSettings()].map(field),
    make("label", { id: "token-field", hidden: true }, make("span", { text: "Access token" }),
      make("input", { name: "token", type: "password", autocomplete: "off" })));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const settings = readSettings(new FormData(form));
    enable(form, settings.method);
    changed(settings);
  });
}

const labelled = (label, input, title) => make("label", { title }, make("span", { text: label }), input);

/** The field of one setting: a checkbox, a list of choices, a text or a number. */
function field({ name, kind, label, help, least, most, choices, placeholder = "default" }) {
  if (kind === "bool") {
    return make("label", { class: "check", title: help },
      make("input", { name, type: "checkbox", value: "true" }), make("span", { text: label }));
  }
  if (choices.length) {
    const options = choices.map((choice) => make("option", { value: choice, text: choice }));
    return labelled(label, make("select", { name }, make("option", { value: "", text: placeholder }), ...options), help);
  }
  const number = { type: "number", min: least, max: most, step: kind === "int" ? 1 : "any" };
  return labelled(label, make("input", { name, placeholder, ...(kind === "str" ? { type: "text" } : number) }), help);
}

/** Put settings into the form. */
export function fillForm(form, settings) {
  for (const element of form.elements) {
    const value = settings[element.name];
    if (element.type === "checkbox") element.checked = Boolean(value);
    else if (element.name !== "token") element.value = value === undefined || (element.name === "seed" && !value) ? "" : value;
  }
  enable(form, settings.method);
}

/** Enable the settings that the method has. */
function enable(form, method) {
  const own = new Set(settingsOf(method).map(({ name }) => name));
  for (const { name } of allSettings()) form.elements[name].disabled = !own.has(name);
}

/** Show the field for the token, which the server has asked for. */
export function askToken() {
  byId("settings").open = true;
  byId("token-field").hidden = false;
  byId("token-field").querySelector("input").focus();
}
