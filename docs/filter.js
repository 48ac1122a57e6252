// On the page of the architectures: a field that leaves the rows in which its words occur.
document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("h1#architectures")) return;
  const rows = [...document.querySelectorAll(".md-typeset tbody tr")];
  const field = Object.assign(document.createElement("input"), {
    type: "search", className: "filter", placeholder: "Filter: qwen, experts, ForSequenceClassification …",
  });
  field.setAttribute("aria-label", "Filter the architectures");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  document.querySelector("h2#native").before(field);
});
