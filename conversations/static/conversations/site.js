"use strict";
/* Live updates of a page. The server renders every piece; this script puts the pieces in place, by id and version. */

const byId = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const turns = byId("turns"), field = byId("message"), pane = document.querySelector(".scroll");

/* ---------- merging: an element in the same version is left alone, with its focus, typed text and open details ---------- */

let added = [];
const asking = document.body.appendChild(Object.assign(document.createElement("div"), { hidden: true }));

function merge(old, fresh) {
  if (fresh.dataset.v && fresh.dataset.v === old.dataset.v) return;
  if (!("merge" in fresh.dataset)) return replace(old, fresh);
  const from = Number(fresh.dataset.from || 0), ids = new Set([...fresh.children].map((child) => child.id));
  if (from > old.children.length) return lacking();
  for (const child of [...old.children].slice(from))
    if (!ids.has(child.id)) {
      asking.append(...all(".htmx-request", child)); // as in replace()
      child.remove();
    }
  const there = new Map([...old.children].map((child) => [child.id, child]));
  let at = from ? old.children[from - 1].nextElementSibling : old.firstElementChild;
  for (const child of [...fresh.children]) {
    const mine = there.get(child.id);
    if (mine === at && at) at = at.nextElementSibling;
    if ("same" in child.dataset) {
      if (!mine || mine.dataset.v !== child.dataset.v) return lacking();
    } else if (mine) merge(mine, child);
    else insert(old, child, at);
  }
  if (fresh.dataset.v) old.dataset.v = fresh.dataset.v;
}

function insert(parent, child, before) {
  if (child.matches("[data-same], [data-from]") || child.querySelector("[data-same], [data-from]")) return lacking();
  parent.insertBefore(child, before);
  added.push(child);
}

function replace(old, fresh) {
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  const details = all("details", fresh);
  all("details", old).forEach((one, n) => { if ("set" in one.dataset && details[n]) set(details[n], one.open); });
  const index = held ? all("summary", old).indexOf(held) : -1;
  keepTyped(old, fresh);
  asking.append(...all(".htmx-request", old)); // the socket was faster than the response, and htmx only handles one for an element on the page
  old.replaceWith(fresh);
  added.push(fresh);
  if (!held) return;
  const again = (held.id && byId(held.id)) || (held === old && fresh) || all("summary", fresh)[index];
  if (again) again.focus({ preventScroll: true });
}

/* Whether a field holds something else than when it was shown. The value of a box that is ticked never changes. */
function changed(one) {
  if (["checkbox", "radio"].includes(one.type)) return one.checked !== one.defaultChecked;
  if (!one.options) return one.value !== one.defaultValue;
  const first = all("option", one).find((option) => option.defaultSelected) ?? one.options[0];
  return one.selectedOptions[0] !== first;
}

/* If a card was decided elsewhere, keep what was typed into it readable. If it was sent from here, the decision contains it. */
function keepTyped(old, fresh) {
  const card = old.querySelector("article.ask"), form = card?.querySelector(".acts-form");
  const kept = old.querySelector(".meanwhile");
  if (kept) fresh.append(kept);
  if (!form || fresh.querySelector("article.ask")?.dataset.card === card.dataset.card) return; // the same is still asked
  const typed = all("textarea, input:not([type=hidden]), select", form).filter((one) => changed(one) && (one.type !== "radio" || one.checked));
  if (!typed.length) return;
  const note = byId("typed").content.cloneNode(true), list = note.querySelector("dl");
  for (const one of typed) {
    const name = document.createElement("dt"), value = document.createElement("dd"), text = document.createElement("pre");
    const label = one.labels?.[0], box = one.type === "checkbox", choice = box || one.type === "radio";
    name.textContent = (choice ? one.closest("fieldset")?.firstElementChild : label?.firstChild)?.textContent.trim() ?? "";
    text.textContent = choice ? label?.textContent.trim() : one.selectedOptions?.[0]?.textContent ?? one.value;
    if (box) text.textContent += one.checked ? ": ticked" : ": not ticked";
    value.append(text);
    list.append(name, value);
  }
  const show = () => {
    byId(fresh.id)?.append(note);
    announce("This was decided in the meantime. Your input is kept below.");
  };
  if (form.matches(".htmx-request")) form.addEventListener("htmx:afterRequest", ({ detail }) => { if (detail.xhr.status >= 400) show(); });
  else setTimeout(show); // once it is on the page
}

/* Details that the user opened or closed stay that way; the rest follow the server. */
function set(details, open) {
  details.open = open;
  details.dataset.set = "";
}
document.addEventListener("click", ({ target }) => {
  const details = target.closest("summary")?.parentElement;
  if (details) details.dataset.set = "";
});

function mergeTurns(fresh) {
  const seq = Number(fresh.dataset.seq), mine = Number(turns.dataset.seq);
  if (seq < mine) return; // older than what is shown
  if (Number(fresh.dataset.after || 0) > mine) return refresh(mine);
  for (const turn of [...fresh.children]) {
    const there = byId(turn.id), after = [...turns.children].find((one) => Number(one.dataset.n) > Number(turn.dataset.n));
    if (there) merge(there, turn);
    else if (!after || after.previousElementSibling) insert(turns, turn, after || null); // before the first turn: not requested
  }
  if (whole) turns.dataset.seq = seq;
}

/* A frame refers to something that this page lacks: restart at 0 and request everything. */
let whole = true;

function lacking() {
  whole = false;
  if (turns) turns.dataset.seq = 0;
  refresh(0);
}

const EXTRA = ["problem", "key"]; // answers to the sender, shown whatever else has changed
const ELSEWHERE = ["list", "approvals", "marks", "notices", "news"]; // not present on every page

function take(html) {
  const template = document.createElement("template"), end = atEnd();
  template.innerHTML = html;
  whole = true;
  const told = template.content.querySelector("#turns"), late = turns && told && Number(told.dataset.seq) < Number(turns.dataset.seq);
  for (const fresh of [...template.content.children]) {
    if (late && !EXTRA.includes(fresh.id)) continue; // a slow response: the page is already newer
    const target = byId(fresh.id);
    fresh.removeAttribute("hx-swap-oob");
    added = [];
    if (!target && ELSEWHERE.includes(fresh.id)) continue;
    if (!target) refresh(turns ? Number(turns.dataset.seq) : 0);
    else if (target === turns) mergeTurns(fresh);
    else if (!("query" in target.dataset)) merge(target, fresh); // search results are not updated
    added.forEach((one) => htmx.process(one));
    noticed(fresh.id, added);
  }
  follow(end);
  see();
}
document.addEventListener("htmx:wsBeforeMessage", (event) => {
  event.preventDefault();
  if (!event.target.matches(".inbox")) take(event.detail.message); // the inbox is only told that something changed
});

/* ---------- scrolling: follow the end, or show that there is more below ---------- */

let grew = false, asks = []; // the cards that were added
let left = false, place = 0; // whether the reader has scrolled up, however little; where the page was last
const below = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight;
const atEnd = () => !pane || (!left && below() < 60);
const isTall = (one) => Boolean(pane) && one.offsetHeight > pane.clientHeight - 48;

function toEnd() {
  left = false;
  if (pane) pane.scrollTop = pane.scrollHeight;
}

function scrolled() {
  left = below() > (pane.scrollTop < place ? 1 : 60); // down again, near the end will do
  place = pane.scrollTop;
  if (atEnd()) byId("below").hidden = true;
}

/* Scroll to the end, but no further than the head of the first of these cards. */
function toEndOf(cards) {
  toEnd();
  const above = cards.find((card) => pane && card.getBoundingClientRect().top < pane.getBoundingClientRect().top);
  above?.scrollIntoView({ block: "start" });
}

function follow(end) {
  if (end) toEndOf(asks);
  else if (grew && turns) byId("below").hidden = atEnd();
  grew = false;
  asks = [];
}

if (turns) {
  pane.addEventListener("scroll", scrolled, { passive: true });
  byId("below").addEventListener("click", toEnd);
  const first = () => { if (!location.hash || location.hash === "#now") toEndOf(all(".ask")); };
  first();
  addEventListener("load", () => requestAnimationFrame(first), { once: true }); // the browser has gone to #now by itself
}

/* ---------- announcements: for screen readers, in the title, in the list ---------- */

let title = document.title.replace(/^\(\d+\) /, "");
const icon = byId("icon"), calm = icon.href;
const announce = (words) => { if (byId("announce")) byId("announce").textContent = words; };

function noticed(id, added) {
  if (id === "name" && added.length) title = `${byId("name").textContent} · Agentsite`;
  if (["marks", "state", "name", "inbox-count"].includes(id)) mark();
  if (id === "list") current();
  if (id === "state" && added.length && !byId("state").textContent.trim()) announce("The agent has finished");
  if (id === "act") sendable();
  if (id === "waits") watch();
  if (id === "turns") ownCame(added);
  grew ||= added.some((one) => turns && turns.contains(one));
  const cards = added.flatMap((one) => all(".ask", one));
  asks.push(...cards);
  for (const card of cards)
    announce(`${card.dataset.asker} asks: ${all(".ask-head h2, .ask-head .badge, .question p", card).map((one) => one.textContent).join(", ")}`);
  added.forEach(dress);
}

function mark() {
  const all = Number(byId("marks")?.dataset.v || 0), here = Number((byId("state") ?? byId("inbox-count"))?.dataset.waiting ?? all);
  document.title = here ? `(${here}) ${title}` : title;
  icon.href = all || here ? icon.dataset.waiting : calm;
}

function current() {
  for (const link of all(".conv")) if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
}

mark();
