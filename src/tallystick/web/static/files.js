// Files that the page reads in slices: dropped ones, and those of the hub's repositories. Only the bytes that an answer
// needs are read, which are headers.

const REPOSITORY = /^([\w-][\w.-]{0,95}\/[\w-][\w.-]{0,95})(?:@([\w./-]{1,200}))?$/;
const AT_ONCE = 6; // requests
const MOST_ROUNDS = 400; // of one answer: more are a mistake
const opened = new Map(); // of the hub, by name
let token = ""; // of this tab: it is never stored, and in no link

export const isRepository = (name) => REPOSITORY.test(name ?? "");
export const setToken = (value) => { token = value.trim(); opened.clear(); };

export class Refused extends Error {} // for lack of access, which a token may give

// Files by their names, each with a size and a way to read a slice of it.
export const dropped = (source, files) => ({
  source,
  sizes: Object.fromEntries(files.map((file) => [file.name, file.size])),
  version: `${performance.now()} ${files.map((file) => file.lastModified).join()}`, // another drop may have files of the same names and sizes
  slice: async (name, start, length) => {
    const file = files.find((one) => one.name === name);
    try {
      return new Uint8Array(await file.slice(start, start + length).arrayBuffer());
    } catch {
      throw new Error(`${name} cannot be read: drop it again`);
    }
  },
});

export function repository(name, hub) {
  if (!opened.has(name)) {
    const asked = listed(name, hub);
    opened.set(name, asked);
    asked.catch(() => opened.delete(name)); // the next try asks again
  }
  return opened.get(name);
}

async function listed(name, hub) {
  const [, path, revision] = name.match(REPOSITORY);
  const address = `${hub}/api/models/${path}/revision/${encodeURIComponent(revision ?? "main")}?blobs=true`;
  const reply = await request(address, name, {}, hub);
  let info;
  try {
    info = await reply.json();
  } catch {
    throw new Error(`${name}: the hub's list of files is not JSON`);
  }
  const files = (info.siblings ?? []).filter((file) => !file.rfilename.includes("/") && Number.isInteger(file.size));
  if (!files.length || typeof info.sha !== "string") throw new Error(`${name} holds no files on the hub`);
  const place = `${hub}/${path}/resolve/${encodeURIComponent(info.sha)}`;
  return {
    source: name,
    sizes: Object.fromEntries(files.map((file) => [file.rfilename, file.size])),
    version: info.sha,
    slice: async (file, start, length) => {
      const headers = { Range: `bytes=${start}-${start + length - 1}` };
      const piece = await request(`${place}/${encodeURIComponent(file)}`, name, headers, hub);
      if (piece.status !== 206 && (start || Number(piece.headers.get("content-length") ?? Infinity) > length)) {
        await piece.body?.cancel(); // the whole file
        throw new Error(`${name}/${file}: the host does not serve parts of files`);
      }
      const content = new Uint8Array(await piece.arrayBuffer());
      if (content.length !== length) throw new Error(`${name}/${file}: ${content.length} of ${length} bytes came`);
      return content;
    },
  };
}

async function request(address, name, headers, hub) {
  let reply;
  try {
    reply = await fetch(address, { headers: token ? { ...headers, Authorization: `Bearer ${token}` } : headers, referrerPolicy: "no-referrer" });
  } catch {
    throw new Error(`${name}: ${new URL(hub).host} cannot be reached`);
  }
  if (reply.ok) return reply;
  if (reply.status === 401 || reply.status === 403) {
    throw new Refused(`${name} does not exist on the hub, or is private or gated: if you have access, give an access token`);
  }
  if (reply.status === 404) throw new Error(`there is no ${name} on the hub: check its name and revision (org/name@revision)`);
  throw new Error(`${name}: the hub answered ${reply.status}`);
}

// Asks with the pieces of the files that the answer needs, until it needs no more.
export async function askWith(answerer, asked, sources) {
  const named = { ...asked };
  for (const [key, files] of Object.entries(sources)) named[key] = { files: { source: files.source, sizes: files.sizes, version: files.version } };
  let reply = await answerer.ask(named);
  for (let round = 0; reply.needed && round < MOST_ROUNDS; round += 1) {
    const files = sources[reply.of];
    const pieces = await inTurns(reply.needed, async ([name, start, length]) => [name, start, encoded(await files.slice(name, start, length))]);
    reply = await answerer.ask({ ...named, pieces: { [reply.of]: pieces } });
  }
  return reply.needed ? { error: `${sources[reply.of].source} needs too many pieces of its files` } : reply;
}

async function inTurns(items, work) {
  const found = [];
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, async () => {
    for (let at = next++; at < items.length; at = next++) found[at] = await work(items[at]);
  }));
  return found;
}

function encoded(content) {
  let text = "";
  for (let at = 0; at < content.length; at += 0x8000) text += String.fromCharCode(...content.subarray(at, at + 0x8000));
  return btoa(text);
}

// The files of a drop: of a folder those directly in it.
export async function carried(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const folder = entries.length === 1 && entries[0].isDirectory ? entries[0] : null;
  if (!folder) return { name: null, files: [...transfer.files] };
  const reader = folder.createReader(), files = [];
  for (let some; (some = await new Promise((done, failed) => reader.readEntries(done, failed))).length;) {
    for (const entry of some.filter((one) => one.isFile)) files.push(await new Promise((done, failed) => entry.file(done, failed)));
  }
  return { name: folder.name, files };
}
