"use strict";
/* The menu of the message field: "/" at its start lists what can be started by name. Loaded after composer.js, whose names it uses. */

const slash = byId("slash"), slashButton = byId("slash-button");
let slashAt = -1; // the row that is marked
let slashShut = ""; // the text for which it was closed by Escape

const slashRows = () => all("[role=option]", slash).filter((row) => !row.hidden);
const slashName = (text) => /^\/([\w.-]*)$/.exec(text)?.[1]; // still typing the name
const slashKnown = (text) => all("[role=option]", slash).find((row) => text.startsWith(`/${row.dataset.name} `));

function slashShow(open) {
  slash.hidden = !open;
  if (!open) slashMark(-1);
}

function slashMark(at) {
  const rows = slashRows();
  slashAt = rows.length ? at : -1;
  all("[role=option]", slash).forEach((row) => row.setAttribute("aria-selected", String(row === rows[slashAt])));
  if (slashAt < 0) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", rows[slashAt].id);
  rows[slashAt].scrollIntoView({ block: "nearest" });
}

function slashLook() {
  const text = field.value, name = slashName(text), known = slashKnown(text), loaded = slash.querySelector("[role=listbox]");
  if (!loaded && /^\/[\w.-]*(\s|$)/.test(text)) return htmx.trigger(slash, "slash"); // also for a line that was pasted
  if (text === slashShut || (name === undefined && !known)) return slashShow(false);
  const words = (name ?? "").toLowerCase(), list = slash.querySelector("[role=listbox]"), takes = slash.querySelector(".slash-takes");
  for (const row of all("[role=option]", slash)) row.hidden = known ? true : !row.dataset.finds.includes(words);
  const any = slashRows().length > 0;
  list.hidden = !any;
  slash.querySelector(".slash-none").hidden = any || Boolean(known);
  takes.hidden = !known;
  if (known) {
    takes.querySelector("span").replaceChildren(...known.querySelector(".takes").cloneNode(true).childNodes);
    takes.querySelector("a").href = known.href;
  }
  const count = slashRows().length;
  if (any && slash.hidden) announce(`${count} workflow${count === 1 ? "" : "s"}: choose with the arrow keys`);
  slashShow(true);
  slashMark(any ? 0 : -1);
}

function slashChoose(row) {
  field.value = `/${row.dataset.name} `;
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true })); // kept as a draft, and the menu says what it takes
}

function slashPressed(event) {
  if (slash.hidden || event.isComposing || (event.target !== field && !slash.contains(event.target))) return;
  const rows = slashRows(), move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    slashShut = field.value;
    field.focus();
    slashShow(false);
  } else if (move && rows.length) slashMark((slashAt + move + rows.length) % rows.length);
  else if (["Enter", "Tab"].includes(event.key) && !event.shiftKey && rows[slashAt] && !event.target.closest(".slash-takes")) slashChoose(rows[slashAt]);
  else return;
  event.preventDefault();
  event.stopImmediatePropagation(); // Enter chooses, and does not send
}

if (slash && form) {
  field.setAttribute("aria-controls", "slash"); // a field of several lines cannot be a combobox: what opens is announced
  field.setAttribute("aria-haspopup", "listbox");
  field.setAttribute("aria-autocomplete", "list");
  field.addEventListener("input", () => { slashShut = ""; slashLook(); });
  field.addEventListener("blur", () => setTimeout(() => { if (!slash.contains(document.activeElement)) slashShow(false); }));
  field.addEventListener("focus", slashLook);
  document.addEventListener("DOMContentLoaded", () => { if (document.activeElement === field) slashLook(); }); // htmx can load it from here on
  document.addEventListener("keydown", slashPressed, true);
  slash.addEventListener("htmx:afterSwap", slashLook);
  slash.addEventListener("mousedown", (event) => { if (event.target.closest("[role=option]")) event.preventDefault(); }); // the field keeps the focus
  slash.addEventListener("click", (event) => {
    const row = event.target.closest("[role=option]");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return; // a link like any other, in a window of its own
    event.preventDefault();
    slashChoose(row);
  });
  slashButton.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || field.value.trim()) return; // what is typed stays: then it is a link
    event.preventDefault();
    field.value = "/";
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  form.addEventListener("htmx:afterRequest", () => setTimeout(slashLook)); // the field may have been emptied
}
