// Save Python's memory once tallystick is imported: node docs/site/snapshot.mjs FOLDER
// A browser restores it instead of starting Python and importing modules, which takes seconds.

import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

process.on("uncaughtException", (error) => { // node would print the line of Pyodide's code, which is a megabyte
  console.error(String(error.message).trim().split("\n").at(-1));
  process.exit(1);
});

const folder = resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const python = await loadPyodide({ _makeSnapshot: true, env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0" } });
python.FS.writeFile("/packages.zip", readFileSync(join(folder, "packages.zip")));
python.runPython(`
import gc, json, sys
sys.path.append("/packages.zip")
from tallystick.web.reply import reply_to

def reply(body):
    return reply_to(body).decode()

# Each answer once, and the families that most models are of: what they import is then in the snapshot.
everything = {"wanted": ["count", "csv", "json", "formula", "ties", "memory", "fit", "serve", "compute", "compare", "reconcile", "check"],
              "other": {"name": "llama-3-8b"}, "claim": "163M", "text": "50257 × 768 = 38,597,376\\n", "run": {"device": "h100"}}
for name in ("gpt2", "mixtral-8x7b"):
    for run in ({"device": "h100"}, {"device": "h100", "mode": "training"}):
        said = json.loads(reply(json.dumps({**everything, "model": {"name": name}, "run": run})))
        wrong = [said["error"]] if "error" in said else [one["error"] for one in said.values() if "error" in one]
        if wrong:
            raise RuntimeError(wrong[0])

import tallystick.architectures.deepseek_v3
from tallystick.web.request import forget
forget()
gc.collect()
gc.freeze()  # what stays is not searched again
gc.set_threshold(200_000)  # as in the worker process
`);
writeFileSync(join(folder, "snapshot"), gzipSync(python.makeMemorySnapshot()));
process.exit(0); // Pyodide keeps node running
