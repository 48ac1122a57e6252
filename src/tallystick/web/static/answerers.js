// Who answers the page: a process of this machine, or Python in the browser. Both have one method, `ask`, which takes
// a request and gives a promise of the reply; a reply with `error` has no answer.

const SECONDS = 20; // for one answer, as in process.py

export const connect = (start) => (start.answered_by === "browser" ? new InBrowser(start) : new InProcess());

class InProcess {
  async ask(request) {
    let reply;
    try {
      reply = await fetch("answers", { method: "POST", body: JSON.stringify(request), headers: { "content-type": "application/json" } });
    } catch {
      return { error: "The server has stopped: start tallystick explore again." };
    }
    return reply.ok ? reply.json() : { error: await reply.text() };
  }
}

class InBrowser {
  constructor(start) {
    this.python = new URL(start.python, location.href).href;
    this.begin();
  }

  // A worker from a blob has this page's content security policy; one from an address would have that of its host.
  begin() {
    const code = `import ${JSON.stringify(new URL("static/python.js", location.href).href)}`;
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    this.worker = new Worker(address, { type: "module" });
    this.ready = new Promise((done) => {
      this.worker.onmessage = (event) => { URL.revokeObjectURL(address); done(event.data); };
      this.worker.onerror = (event) => done({ error: `Python did not start: ${event.message ?? "its worker was not loaded"}` });
    });
    this.worker.postMessage(this.python);
  }

  async ask(request) {
    const { error } = await this.ready;
    const reply = error ? { error, ended: true } : await this.answer(request);
    if (reply.ended) {
      this.worker.terminate();
      this.begin(); // for the next request
    }
    return reply;
  }

  answer(request) {
    return new Promise((done) => {
      const late = setTimeout(() => done({ error: `this took more than ${SECONDS} seconds and was stopped`, ended: true }), SECONDS * 1000);
      this.worker.onmessage = (event) => { clearTimeout(late); done(JSON.parse(event.data)); };
      this.worker.postMessage(JSON.stringify(request));
    });
  }
}
