// The server: models, settings, generated puzzles, and a run as a stream of events. Same origin only.

/** A refusal of the server, in one sentence; `status` is that of HTTP. */
export class Refusal extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

let token = "";

/** The bearer token to send from now on; kept in memory only. */
export const useToken = (text) => void (token = text.trim());

async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer; is it still running?", 0);
  }
  if (!response.ok) throw new Refusal(await reason(response), response.status);
  return response;
}

async function reason(response) {
  if (response.status === 429) {
    const wait = response.headers.get("Retry-After");
    return `The server is busy; try again ${wait ? `in ${wait} s` : "soon"}.`;
  }
  const body = await response.json().catch(() => ({}));
  const said = body.error ?? body.detail;
  return typeof said === "string" ? said : `The server refused (HTTP ${response.status}).`;
}

/** The loaded models: [{name, task}, ...]. */
export async function models() {
  const body = await (await ask("v1/models")).json();
  return body.models ?? body;
}

/** The methods and the settings of the form: {methods, settings: [{name, kind, ...}, ...]}. */
export const settingsTable = async () => (await ask("v1/settings")).json();

/** A generated puzzle as text. */
export async function generate(task, seed) {
  const query = new URLSearchParams({ task, seed });
  return (await (await ask(`v1/generate?${query}`)).json()).puzzle;
}

/** The page of a replay without its data, for a file of one's own. */
export const replayTemplate = async () => (await ask("v1/replay")).text();

/** The bundled samples: {task: [{level, puzzle, seed, name, settings}, ...]}; a name and settings are optional. */
export const samples = async () => (await ask("static/samples.json")).json();

/** Run a puzzle; yields [event, data] as they arrive. */
export async function* solve(body, signal) {
  const response = await ask("v1/solve/stream", {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    buffer = (buffer + (value ?? "")).replaceAll("\r\n", "\n");
    const events = buffer.split("\n\n");
    buffer = events.pop(); // the last is not complete yet
    for (const event of events) {
      const parsed = parseEvent(event);
      if (parsed) yield parsed;
    }
    if (done) return;
  }
}

function parseEvent(text) {
  let name = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? [name, JSON.parse(data.join("\n"))] : null; // comments keep a line alive
}
