// onnxruntime-web in this browser: what there is to run on, and the files it needs, fetched with progress.

const SIMD = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);
const MOST_THREADS = 8;

/** A failure in one sentence for the reader; `useTerminal`: nothing in this browser helps, `lost`: the connection. */
export class EngineError extends Error {
  constructor(sentence, { useTerminal = false, lost = false } = {}) {
    super(sentence);
    Object.assign(this, { useTerminal, lost });
  }
}

/**
 * What this browser offers, best first: {found: [{backend, threads, build}], notes}, where the notes say what is missing.
 * Throws an EngineError where there is nothing. `asked` may name a backend and threads; `frugal` says why the least memory is to be used.
 */
export async function offers(asked = {}) {
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(SIMD)) {
    throw new EngineError("This browser has no WebAssembly with SIMD, which solving here needs; use a browser from 2023 or later.", { useTerminal: true });
  }
  const single = { backend: "wasm", threads: 1, build: "wasm" };
  if (asked.frugal) return { found: [single], notes: [`After a failure (${asked.frugal}), one thread computes one particle at a time.`] };
  const cores = Math.min(navigator.hardwareConcurrency || 1, MOST_THREADS);
  const isolated = globalThis.crossOriginIsolated;
  const threads = isolated ? asked.threads || cores : 1;
  const gpu = "Suspending" in WebAssembly && (await hasGpu(asked.backend === "webgpu"));
  const found = [
    ...(gpu ? [{ backend: "webgpu", threads: 1, build: "jspi" }] : []), ...(threads > 1 ? [{ ...single, threads }] : []), single,
  ].filter(({ backend }) => !asked.backend || backend === asked.backend);
  if (!found.length) throw new EngineError("This browser has no WebGPU, which the address of this page asks for; leave out ?backend=webgpu.");
  const notes = [];
  if (!gpu && asked.backend !== "wasm") notes.push("There is no WebGPU in this browser, which would be faster.");
  if (!isolated && cores > 1) notes.push("Threads are not allowed in this window, so one is used.");
  return { found, notes };
}

/** A GPU; one that is emulated is slower than WebAssembly, so it counts only where it is asked for. */
async function hasGpu(emulated) {
  try {
    const adapter = await navigator.gpu?.requestAdapter();
    return Boolean(adapter) && (emulated || !(adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter));
  } catch {
    return false;
  }
}

/** In words, for the page. */
export const offerWords = ({ backend, threads }) =>
  backend === "webgpu" ? "WebGPU" : `WebAssembly, ${threads} ${threads === 1 ? "thread" : "threads"}`;

/** The bytes of a file; `note(bytes)` is called as they arrive. Throws an EngineError where the line breaks. */
export async function download(url, note) {
  const parts = [];
  let size = 0;
  try {
    const response = await fetch(url);
    if (!response.ok) throw new EngineError(`The file ${name(url)} is not there (HTTP ${response.status}); the site is not complete.`);
    const reader = response.body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
      note(value.length);
    }
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError(`The download of ${name(url)} broke off; check the connection, then go on.`, { lost: true });
  }
  return unpacked(await new Blob(parts).arrayBuffer());
}

const name = (url) => new URL(url).pathname.split("/").at(-1);

/** Without its gzip, which a host may already have undone. */
async function unpacked(buffer) {
  const [first, second] = new Uint8Array(buffer, 0, 2);
  if (first !== 0x1f || second !== 0x8b) return buffer;
  return new Response(new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** The even bytes come first in a stored graph, then the odd ones: halves of float16 numbers compress better apart. */
export function interleaved(buffer) {
  const stored = new Uint8Array(buffer), half = Math.ceil(stored.length / 2);
  const bytes = new Uint8Array(stored.length);
  for (let k = 0; k < half; k++) bytes[2 * k] = stored[k];
  for (let k = half; k < stored.length; k++) bytes[2 * (k - half) + 1] = stored[k];
  return bytes;
}

/** onnxruntime-web for an offer, its WebAssembly given as bytes. */
export async function openRuntime({ threads, build }, files, binary) {
  const ort = await import(files[build].script);
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = { mjs: files[build].loader };
  ort.env.wasm.wasmBinary = binary;
  ort.env.logLevel = "error";
  return ort;
}
