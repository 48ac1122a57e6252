// Python in a worker: Pyodide, restored from a memory snapshot in which tallystick is imported (`make site` makes both).

async function bytes(name, folder, unzipped = false) {
  const reply = await fetch(new URL(name, folder));
  if (!reply.ok) throw new Error("this copy of the site lacks Python; `make site` adds it");
  return new Uint8Array(await (unzipped ? new Response(reply.body.pipeThrough(new DecompressionStream("gzip"))) : reply).arrayBuffer());
}

async function begin(folder) {
  const [snapshot, packages, { loadPyodide }, { default: made }] = await Promise.all([
    bytes("snapshot", folder, true), bytes("packages.zip", folder),
    import(new URL("pyodide.mjs", folder)), import(new URL("pyodide.asm.mjs", folder))]);
  const createPyodideModule = async (settings) => {
    const module = await made(settings);
    module.growMemory(snapshot.length); // the snapshot is larger than the memory that Pyodide begins with
    return module;
  };
  const python = await loadPyodide({ indexURL: folder, packageBaseUrl: folder, createPyodideModule, _loadSnapshot: snapshot });
  python.FS.writeFile("/packages.zip", packages); // what is not imported yet
  return python.globals.get("reply");
}

let reply;
self.onmessage = async ({ data }) => {
  if (reply) {
    try {
      self.postMessage(reply(data));
    } catch (error) { // of Python's stack or memory, after which it is unusable
      const why = error instanceof RangeError ? "the input is nested too deeply" : `Python stopped: ${error.message.trim().split("\n").at(-1)}`;
      self.postMessage(JSON.stringify({ error: why, ended: true }));
    }
    return;
  }
  try {
    reply = await begin(data);
    self.postMessage({});
  } catch (error) {
    self.postMessage({ error: `Python did not start: ${error.message}` });
  }
};
