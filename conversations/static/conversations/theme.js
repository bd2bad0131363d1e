// The choice between light and dark takes effect at once; the form alone does the same by loading the page again.
"use strict";

document.querySelector("[data-theme-form]")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget, chosen = event.submitter;
  const answer = await fetch(form.action, { method: "POST", body: new FormData(form, chosen), redirect: "manual" });
  if (answer.type !== "opaqueredirect") return location.reload(); // it was not taken: the page says how it stands
  if (chosen.value) document.documentElement.dataset.theme = chosen.value;
  else delete document.documentElement.dataset.theme;
  for (const button of form.querySelectorAll("[name=theme]"))
    button.setAttribute("aria-pressed", String(button === chosen));
});
