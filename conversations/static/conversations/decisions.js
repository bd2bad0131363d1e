"use strict";
/* Decisions: move to the next waiting card; keys that focus but never decide; the sheet. Loaded after site.js, whose names it uses. */

let led = 0; // when the focus was moved: keys typed right after that are not the shortcuts below
const isLeft = (within) => document.activeElement === document.body || within?.contains(document.activeElement);

/* Move the focus to the next element, from the form that was sent or that is gone. If the user has gone elsewhere meanwhile, leave it. */
function lead(to, from) {
  if (!to || !isLeft(from)) return;
  led = Date.now();
  to.scrollIntoView({ block: isTall(to) ? "start" : "nearest" });
  to.focus({ preventScroll: true });
}

const next = () => lead(document.querySelector(".ask") || field);

document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (!isLeft(target)) all("[autofocus]", target).forEach((one) => one.removeAttribute("autofocus")); // as in lead()
});

/* When a form opens on a card, scroll its buttons into view too, not only the focused field, if both fit. */
document.addEventListener("htmx:afterSettle", ({ target, detail }) => {
  if (target.matches(".live-changes")) return; // whoever types must not lose their place
  const form = target.closest(".ask")?.querySelector(".acts-form");
  if (form && !isTall(form)) form.querySelector(".line")?.scrollIntoView({ block: "nearest" });
  if (detail.requestConfig?.elt.matches("[data-leaves]")) lead(target.closest(".ask"));
});

/* Escape leaves the form of a card. What was changed in it goes only with a second Escape. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  const form = event.target.closest(".acts-form"), warning = form?.querySelector("[data-leaving]");
  if (!warning) return;
  event.preventDefault();
  const typed = "typed" in form.dataset || all("textarea, input:not([type=hidden]), select", form).some(changed);
  const leaves = form.querySelector("[data-leaves]");
  htmx.process(leaves); // it may have come a moment ago
  if (!typed || !warning.hidden) return leaves.click();
  warning.hidden = false;
  announce(warning.textContent);
});
document.addEventListener("input", ({ target }) => {
  const warning = target.closest(".acts-form")?.querySelector("[data-leaving]");
  if (warning) warning.hidden = true;
});

/* Escape leaves the message field, in which new conversations begin: then the keys below work. */
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing && event.target === field) field.blur();
});

/* ---------- the password again ---------- */

let lapses = 0; // when the password of this page's person is asked for again

function verified(seconds) {
  document.body.dataset.verified = "";
  clearTimeout(lapses);
  lapses = setTimeout(() => delete document.body.dataset.verified, 1000 * seconds);
}
if ("verified" in document.body.dataset) verified(document.body.dataset.verified);

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const typed = detail.elt.querySelector?.(".password input");
  if (typed?.value && [200, 409].includes(detail.xhr.status)) verified(60 * typed.closest(".password").dataset.minutes);
});
document.addEventListener("htmx:afterSettle", ({ target }) => target.querySelector?.(".password.asked input")?.focus());

/* What has to be filled in before this button is pressed; null if nothing has to. */
function passwordOf(button) {
  const password = button.matches(".primary") && button.form?.querySelector(".password input");
  return password && password.checkVisibility() && !password.value ? password : null;
}

let going = 0; // when G was pressed: the next key says where to
const goes = () => Date.now() - going < 2000;

document.addEventListener("keydown", (event) => {
  if (Date.now() - led < 1000 || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
  const key = event.key.toLowerCase();
  const place = { w: "/workflows/", a: document.querySelector('.nav a[href="/approvals/"]')?.href }[key];
  if (place && goes()) return location.assign(place);
  going = key === "g" ? Date.now() : 0;
  const to = { a: ".ask .btn.primary", "/": "#q" }[key];
  const found = to && document.querySelector(to);
  if (!found) return;
  event.preventDefault();
  (passwordOf(found) || found).focus();
});

function sum(sheet) {
  const button = sheet?.querySelector("[data-sum]");
  if (!button) return;
  const counts = new Map();
  for (const { dataset } of all("input[data-says]:checked", sheet)) counts.set(dataset.says, (counts.get(dataset.says) || 0) + 1);
  const words = [...counts].map(([says, n]) => `${says} ${n}`).join(", ");
  button.textContent = words ? words[0].toUpperCase() + words.slice(1) : "Submit decisions";
}
document.addEventListener("change", ({ target }) => sum(target.closest(".sheet")));

/* On the sheet, whoever types an answer means to give it. */
document.addEventListener("input", ({ target }) => {
  const asked = target.closest("[data-reply]")?.closest("li");
  asked?.querySelector('[type=radio][value="answer"]')?.click();
});
sum(document.querySelector(".sheet"));

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries)
    document.querySelector(`.jump a[href="#${target.id}"]`)?.toggleAttribute("aria-current", isIntersecting);
}, { root: pane, threshold: 0.5 });

function watch() {
  seen.disconnect();
  all(".ask").forEach((card) => seen.observe(card));
}

watch();
