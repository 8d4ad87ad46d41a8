// Small helpers for the document: elements, theme colours, canvases.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element: attributes by name, `text` for its text, then its children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  fill(element, attributes);
  element.append(...children);
  return element;
}

/** The same in SVG. */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes);
  element.append(...children);
  return element;
}

function fill(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
}

let probe = null;

/** A colour of the theme in force, as a canvas understands it. */
export function colour(name) {
  if (!probe) {
    probe = make("span", { hidden: true });
    document.body.append(probe);
  }
  probe.style.color = `var(--${name})`; // resolves light-dark(), which a custom property keeps as text
  return getComputedStyle(probe).color;
}

/** Is the page dark now? */
export const isDark = () =>
  (document.documentElement.dataset.theme ||
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/** The canvas cleared and scaled to the screen: its context, width and height; null if hidden. */
export function pen(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  if (!width || !height) return null;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(canvas.width / width, canvas.height / height);
  return { context, width, height };
}

/** A share in words: 0.987 -> "98.7 %". */
export function percent(share) {
  if (share > 0.9995 && share < 1) return "over 99.9 %";
  const value = 100 * share;
  return `${value >= 99.95 || value < 0.05 ? Math.round(value) : value.toFixed(1)} %`;
}

/** With thousands separators. */
export const count = (number) => Math.round(number).toLocaleString("en");

/** "1 step", "2 steps". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

const SPOKEN = 2500; // milliseconds between two reports of progress, which screen readers speak

/** A clock for reports of progress: its function says whether one is due, which the first one always is. */
export function reportClock() {
  let last = 0;
  return (first) => {
    const now = performance.now(), due = first || now - last >= SPOKEN;
    if (due) last = now;
    return due;
  };
}
