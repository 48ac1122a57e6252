// A paragraph that is a link to a story of the explorer: the story is shown below it, where a web server has the page.
document.addEventListener("DOMContentLoaded", () => {
  if (!location.protocol.startsWith("http")) return;
  for (const link of document.querySelectorAll('.md-typeset p > a:only-child[href*="explore/index.html#story="]')) {
    if (link.parentElement.textContent.trim() !== link.textContent.trim()) continue;
    const address = new URL(link.href);
    address.search = "?embed";
    const frame = Object.assign(document.createElement("iframe"), { className: "story", title: link.textContent, loading: "lazy" });
    frame.addEventListener("load", () => {
      const page = frame.contentDocument.documentElement;
      new ResizeObserver(() => { frame.style.height = `${frame.contentDocument.body.offsetHeight}px`; }).observe(page.querySelector("body"));
    });
    frame.src = address;
    link.parentElement.after(frame);
  }
});
