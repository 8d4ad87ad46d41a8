// The service worker of the site: keeps its files for the next visit (also without a connection), and adds the two
// headers that allow threads. Every file is asked for anew first, but for the large ones, whose names change with them.

const CACHE = "tiltrm-VERSION";
const LARGE = /\.(bin|mjs)$/;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("tiltrm-") && name !== CACHE) await caches.delete(name);
  await self.clients.claim();
})()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  event.respondWith(answer(event));
});

async function answer(event) {
  const { request } = event;
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept && LARGE.test(new URL(request.url).pathname)) return isolated(kept);
  try {
    const response = await fetch(request);
    if (response.ok && response.status === 200) event.waitUntil(cache.put(request, response.clone()).catch(() => {}));
    return isolated(response);
  } catch (error) {
    if (kept) return isolated(kept);
    throw error;
  }
}

/** The same answer with the headers of an isolated page. */
function isolated(response) {
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
