// The page's service worker. It keeps nothing: it only says so when the server cannot be reached, where a browser would show its own page.
const AWAY = `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>Reprise</title><h1>Reprise</h1><p>The server cannot be reached.</p><p><a href="/">Try again</a></p>`;

addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(clients.claim()));
addEventListener("fetch", (e) => {
  if (e.request.mode !== "navigate") return; // everything else is the browser's
  e.respondWith(fetch(e.request).catch(() => new Response(AWAY, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'" } })));
});
