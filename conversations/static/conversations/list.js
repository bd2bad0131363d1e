"use strict";
/* The list and the conversation menu: keyboard, and closing. Loaded after site.js, whose names it uses. */

const menu = () => document.querySelector("details.menu[open]");

function closeMenu(back) {
  const open = menu();
  if (!open) return;
  open.open = false;
  if (back) open.querySelector("summary").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (event.target.id === "q") event.target.blur(); // the browser has already cleared it
  else closeMenu(true);
});
document.addEventListener("click", ({ target }) => { if (!target.closest("details.menu")) closeMenu(false); });
document.addEventListener("focusin", ({ target }) => { if (!target.closest("details.menu")) closeMenu(false); });
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (detail.xhr.status === 200 && detail.elt.matches("[data-renames]")) closeMenu(true);
});
document.addEventListener("htmx:afterSwap", ({ target }) => { if (target.id === "list") current(); });
