
// The service worker of the explorer's page: it keeps the page's files, so that the page works without a network.
// `make site` writes the two lines above: a digest of the files, and their names.

const CACHE = `tallystick ${VERSION}`;
const KEPT = new Set(FILES.map((name) => new URL(name, self.registration.scope).href));

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...KEPT])).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(
    names.filter((name) => name.startsWith("tallystick ") && name !== CACHE).map((name) => caches.delete(name)))));
});

self.addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  address.search = address.hash = "";
  if (event.request.method !== "GET" || !KEPT.has(address.href.replace(/\/index\.html$/, "/"))) return;
  event.respondWith(caches.open(CACHE)
    .then((cache) => cache.match(address.href.replace(/\/index\.html$/, "/")))
    .then((kept) => kept ?? fetch(event.request)));
});
