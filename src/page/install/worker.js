// The page's service worker. It keeps nothing. It says so when the server cannot be reached, where a browser would show its own page, and shows that something
// waits when the server tells this device.
const AWAY = `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>Reprise</title><h1>Reprise</h1><p>The server cannot be reached.</p><p><a href="/">Try again</a></p>`;

addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(clients.claim()));
addEventListener("fetch", (e) => {
  if (e.request.mode !== "navigate") return; // everything else is the browser's
  e.respondWith(fetch(e.request).catch(() => new Response(AWAY, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'" } })));
});

const WORDS = {
  en: { approval: "An approval is needed", question: "A question is waiting", ended: "An answer is complete", other: "Something is waiting" },
  de: { approval: "Eine Erlaubnis wird gebraucht", question: "Eine Frage wartet", ended: "Eine Antwort ist fertig", other: "Etwas wartet" },
  he: { approval: "נדרש אישור", question: "שאלה ממתינה", ended: "תשובה מוכנה", other: "משהו ממתין" },
};

// Also for a message that nobody can read: browsers take the subscription from a page that shows nothing.
async function show(data) {
  let told = {};
  try {
    told = data.json() ?? {};
  } catch {
    // as it is
  }
  const text = (name) => (typeof told[name] === "string" ? told[name] : "");
  const { kind, id, tag } = { kind: text("kind"), id: text("id"), tag: text("chat") };
  const language = navigator.language.slice(0, 2);
  const words = WORDS[language] ?? WORDS.en;
  const before = tag ? await registration.getNotifications({ tag }) : [];
  await registration.showNotification("Reprise", {
    body: (Object.hasOwn(words, kind) && words[kind]) || words.other, lang: language, dir: language === "he" ? "rtl" : "ltr", icon: "/icon.svg",
    tag, renotify: before.some((each) => each.data.id !== id), data: { kind, id, chat: tag },
  });
}
addEventListener("push", (e) => e.waitUntil(show(e.data)));

// The window that is open shows what waits, or a new one.
async function open(told) {
  const [page] = (await clients.matchAll({ type: "window" })).filter((each) => each.frameType === "top-level");
  if (!page) return clients.openWindow(`/?${new URLSearchParams(told)}`);
  page.postMessage(told);
  return page.focus().catch(() => undefined);
}
addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil(open(e.notification.data));
});
