// Keeping a run: a link with its puzzle and settings, or the whole replay as one file.

import { replayTemplate } from "./api.js";
import { byId } from "./dom.js";
import { writeAddress } from "./state.js";

const EMPTY = 'id="replay">{}<\/script>'; // in the template

/** Wire the two buttons; `tell(text)` reports, `complain(error)` shows a failure. */
export function wireKeep(replay, tell, complain) {
  byId("link").addEventListener("click", async () => {
    const { task, type = task, puzzle, method, seed, settings } = replay.run;
    const address = new URL(writeAddress({ task: type, puzzle, settings: { method, seed, ...settings } }), location.href).href;
    history.replaceState(null, "", address);
    const copied = await navigator.clipboard?.writeText(address).then(() => true, () => false);
    tell(copied ? "Link copied." : "The address of this page now holds the puzzle and the settings; copy it.");
  });
  byId("save").addEventListener("click", async () => {
    try {
      save(await replayTemplate(), replay.recorded);
      tell("Saved: the file opens in any browser and needs no connection.");
    } catch (error) {
      complain(error);
    }
  });
}

function save(template, recorded) {
  const text = JSON.stringify(recorded).replaceAll("<", "\\u003c"); // it must not end the element that holds it
  const html = template.replace(EMPTY, () => `id="replay">${text}<\/script>`);
  const address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: `tiltrm-${recorded.start.task}-${recorded.start.method}.html` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
