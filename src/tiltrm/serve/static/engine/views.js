// The symmetric views that `tiltrm site` wrote down: of every stage a symmetry {source, names} for each particle.

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

function rows(numbers, width) {
  return Array.from({ length: numbers.length / width }, (_, k) => [...numbers.subarray(k * width, (k + 1) * width)]);
}

/** Unpack the views of a model's description; null where its plan has none. */
export function readViews({ views, cells, vocabulary }) {
  if (!views) return null;
  return views.source.map((packed, stage) => {
    const sources = rows(new Uint16Array(bytes(packed).buffer), cells);
    const names = rows(bytes(views.names[stage]), vocabulary);
    return sources.map((source, k) => ({ source, names: names[k] }));
  });
}
