// Apply the chosen theme at once. Without JavaScript the form does the same by reloading the page.
"use strict";

document.querySelector("[data-theme-form]")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget, chosen = event.submitter;
  const answer = await fetch(form.action, { method: "POST", body: new FormData(form, chosen), headers: headers(), redirect: "manual" });
  if (answer.headers.has("X-Person")) return another();
  if (answer.type !== "opaqueredirect") return location.reload(); // it was refused: the reloaded page shows the current theme
  if (chosen.value) document.documentElement.dataset.theme = chosen.value;
  else delete document.documentElement.dataset.theme;
  for (const button of form.querySelectorAll("[name=theme]"))
    button.setAttribute("aria-pressed", String(button === chosen));
});
