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

/* What a field holds before anybody types; a select has no `defaultValue`. */
const initial = (one) => one.defaultValue ?? all("option", one).find((option) => option.defaultSelected)?.value ?? "";

const changed = (one) => one.type === "radio" ? one.checked && !one.defaultChecked : one.value !== initial(one);

/* If a card was decided elsewhere, keep what was typed into it readable. If it was sent from here, the decision contains it. */
function keepTyped(old, fresh) {
  const card = old.querySelector("article.ask"), form = card?.querySelector(".acts-form");
  const kept = old.querySelector(".meanwhile");
  if (kept) fresh.append(kept);
  if (!form || fresh.querySelector("article.ask")?.dataset.card === card.dataset.card) return; // the same is still asked
  const typed = all("textarea, input:not([type=hidden]), select", form).filter(changed);
  if (!typed.length) return;
  const note = byId("typed").content.cloneNode(true), list = note.querySelector("dl");
  for (const one of typed) {
    const name = document.createElement("dt"), value = document.createElement("dd"), text = document.createElement("pre");
    const label = one.labels?.[0], radio = one.type === "radio";
    name.textContent = (radio ? one.closest("fieldset")?.firstElementChild : label?.firstChild)?.textContent.trim() ?? "";
    text.textContent = radio ? label?.textContent.trim() : one.selectedOptions?.[0]?.textContent ?? one.value;
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
const ELSEWHERE = ["list", "approvals", "marks", "notices"]; // not present on every page

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
  take(event.detail.message);
});

/* ---------- scrolling: follow the end, or show that there is more below ---------- */

let grew = false;
const atEnd = () => !pane || pane.scrollHeight - pane.scrollTop - pane.clientHeight < 60;
const toEnd = () => { if (pane) pane.scrollTop = pane.scrollHeight; };

function follow(end) {
  if (end) toEnd();
  else if (grew && turns) byId("below").hidden = atEnd();
  grew = false;
}

if (turns) {
  pane.addEventListener("scroll", () => { if (atEnd()) byId("below").hidden = true; see(); }, { passive: true });
  byId("below").addEventListener("click", toEnd);
  if (!location.hash || location.hash === "#now") toEnd();
}

/* ---------- announcements: for screen readers, in the title, in the list ---------- */

let title = document.title.replace(/^\(\d+\) /, "");
const icon = byId("icon"), calm = icon.href;
const announce = (words) => { if (byId("announce")) byId("announce").textContent = words; };

function noticed(id, added) {
  if (id === "name" && added.length) title = `${byId("name").textContent} · Agentsite`;
  if (["marks", "state", "name"].includes(id)) mark();
  if (id === "list") current();
  if (id === "state" && added.length && !byId("state").textContent.trim()) announce("The agent has finished");
  if (id === "act") sendable();
  if (id === "waits") watch();
  grew ||= added.some((one) => turns && turns.contains(one));
  for (const card of added.flatMap((one) => all(".ask", one)))
    announce(`The agent asks: ${all(".ask-head h2, .ask-head .badge, .question p", card).map((one) => one.textContent).join(", ")}`);
  added.forEach(dress);
}

function mark() {
  const all = Number(byId("marks")?.dataset.v || 0), here = Number(byId("state")?.dataset.waiting ?? all);
  document.title = here ? `(${here}) ${title}` : title;
  icon.href = all || here ? icon.dataset.waiting : calm;
}

function current() {
  for (const link of all(".conv")) if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
}

/* ---------- parts of a block that need JavaScript ---------- */

function dress(within) {
  const template = byId("copy");
  if (template && navigator.clipboard)
    for (const head of all(".code-head, .cmd-head", within))
      if (!head.querySelector("[data-copy]")) head.append(template.content.cloneNode(true));
  tell();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const box = button.closest(".code, .cmd"), lines = all(".ln", box);
  await navigator.clipboard.writeText(lines.length ? lines.map((line) => line.textContent).join("\n") : box.querySelector("code").textContent);
  announce("Copied");
  button.lastElementChild.textContent = "Copied";
  setTimeout(() => { button.lastElementChild.textContent = "Copy"; }, 2000);
});

const span = (s) => s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
const nearest = (s, unit = s < 3600 ? 60 : 3600) => Math.round(s / unit) * unit;

function tell() {
  for (const time of all("time[datetime]:not([data-exact])")) {
    const past = (Date.now() - new Date(time.dateTime)) / 1000;
    if (Math.abs(past) > 86400) continue; // it is shown as a date
    let words = past < 60 ? "just now" : `${span(past)} ago`;
    if ("for" in time.dataset) words = span(Math.max(past, 0));
    else if (past < 0) words = `in ${span(Math.max(nearest(-past), 60))}`;
    if (time.textContent !== words) time.textContent = words;
  }
}
setInterval(tell, 1000);

/* ---------- the connection: when lost, show that, count down and reconnect ---------- */

const sockets = new Map(); // element -> {wrapper, tries, code}, with `open` (since when), `at` (time of the next attempt) or `over` (the reason)
const main = () => sockets.get(turns || document.querySelector("[ws-connect]"));
const SIGN_IN = 4401, CLOSED = { [SIGN_IN]: "You are signed out.", 4403: "You no longer have access to this page.", 4404: "This conversation was deleted." };
const STEADY = 5000, LONGEST = 30_000; // milliseconds: refused sockets open for a moment too; connecting is given up after LONGEST
let asked = 0, again = 0;

htmx.config.wsReconnectDelay = () => 2 ** 30; // htmx does not reconnect: it is done below, where the user can do it now
htmx.createWebSocket = (url) => {
  const socket = new WebSocket(url.includes("/conversations/") ? `${url}?after=${turns.dataset.seq}` : url);
  setTimeout(() => { if (socket.readyState === WebSocket.CONNECTING) socket.close(); }, LONGEST);
  return socket;
};

document.addEventListener("htmx:wsOpen", ({ target, detail }) => {
  const before = sockets.get(target);
  sockets.set(target, { ...before, wrapper: detail.socketWrapper, open: Date.now() });
  if (before && target === (turns || target)) announce("Connected again");
  online();
  look();
});
document.addEventListener("htmx:wsClose", ({ target, detail }) => {
  const last = sockets.get(target), before = Date.now() - last?.open > STEADY ? {} : last, { code } = detail.event;
  const tries = (before?.tries ?? 0) + 1, wait = Math.min(2 ** (tries - 1), 30) * (0.75 + Math.random() / 4);
  const doubted = code === SIGN_IN && before?.code !== SIGN_IN; // the browser may have a new session, after a change of password in another tab
  const over = !doubted && CLOSED[code];
  sockets.set(target, { wrapper: detail.socketWrapper, tries, code, ...(over ? { over } : { at: Date.now() + wait * 1000 }) });
  if (over || tries === 1) announce(over || "Connection lost");
  online();
});

function online() {
  const strip = byId("offline"), state = main();
  if (!strip || !state) return;
  const end = atEnd();
  strip.hidden = Boolean(state.open);
  if (end) toEnd();
  sendable();
  if (state.open) return;
  const left = Math.ceil((state.at - Date.now()) / 1000); // NaN during an attempt
  strip.querySelector("strong").textContent = state.over || "Connection lost.";
  strip.querySelector("[data-says]").textContent =
    state.over ? "Your draft is kept." : `Reconnecting ${left > 0 ? `in ${left} s` : "now"}. The agent keeps working; your draft is kept.`;
  strip.querySelector("button").textContent = state.over ? "Reload" : "Try now";
}

function reconnect(now) {
  for (const state of sockets.values())
    if (state.at && (now || Date.now() >= state.at)) {
      delete state.at; // until it closes again, which sets the time of the next attempt: an element has one socket
      state.wrapper.reconnect();
    }
  online();
}
setInterval(reconnect, 250, false);
addEventListener("online", () => reconnect(true));
byId("offline")?.querySelector("button").addEventListener("click", () => main()?.over ? location.reload() : reconnect(true));

function say(message) {
  if (main()?.open) main().wrapper.sendImmediately(JSON.stringify(message));
}

function refresh(seq) {
  const early = asked + 1000 - Date.now();
  clearTimeout(again);
  if (early > 0) return void (again = setTimeout(refresh, early, turns ? Math.min(seq, Number(turns.dataset.seq)) : seq));
  asked = Date.now();
  say({ refresh: seq });
}

/* A visible page that is scrolled to its end has been read, unless a turn is working: other windows then mark it as read. */
let saw = 0, seeing = 0;
const works = () => document.querySelector("[data-stop]") && byId("state").dataset.is !== "waiting";

function look() {
  const looking = document.visibilityState === "visible", seq = Number(turns?.dataset.seq || 0);
  if (!looking || !seq || !atEnd() || works()) return say({ looking });
  saw = seq;
  say({ looking, seen: seq });
}

function see() {
  if (!turns || Number(turns.dataset.seq) <= saw || document.hidden || !atEnd() || works()) return;
  clearTimeout(seeing);
  seeing = setTimeout(look, 200); // one report for updates that arrive together
}
document.addEventListener("visibilitychange", () => { look(); if (!document.hidden) reconnect(true); });
setInterval(() => { if (!document.hidden) look(); }, 10_000);

/* ---------- forms: requests and responses ---------- */

document.addEventListener("htmx:configRequest", ({ detail }) => {
  detail.headers["X-CSRFToken"] = token();
  if (turns) detail.headers["X-Seq"] = turns.dataset.seq;
});
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  detail.elt.addEventListener("htmx:beforeOnLoad", answered); // on the element, because it may be replaced before the response arrives
});

function answered(event) {
  const { responseText, responseURL } = event.detail.xhr, whole = /^\s*<!doctype/i.test(responseText);
  if (!whole && !responseText.includes('hx-swap-oob="merge"')) return; // htmx swaps it in where it was requested
  event.preventDefault();
  if (!whole) take(responseText);
  else if (responseURL.includes("/login/")) location.reload();
  else unsent(); // an error page
}
document.addEventListener("htmx:sendError", unsent);
document.addEventListener("htmx:responseError", unsent);
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  setTimeout(() => asking.replaceChildren());
  const taken = detail.xhr.status >= 200 && detail.xhr.status < 300;
  if (taken && byId("problem")?.dataset.v === "unsent") byId("problem").replaceChildren();
  if (taken && detail.elt.matches("[data-decides]")) next();
  if (taken && detail.elt.matches(".go-on") && matchMedia("(pointer: fine)").matches) lead(field); // its button is gone
});

function unsent() {
  const slot = byId("problem");
  if (!slot) return;
  slot.dataset.v = "unsent";
  slot.replaceChildren(byId("unsent").content.cloneNode(true));
}

const token = () => all("[name=csrfmiddlewaretoken]").find((one) => one.value)?.value ?? "";
document.addEventListener("submit", ({ target }) => {
  const input = target.querySelector("[name=csrfmiddlewaretoken]");
  if (input && !input.value) input.value = token();
}, true);

function grow(area) {
  if (CSS.supports("field-sizing", "content")) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}
document.addEventListener("input", ({ target }) => { if (target.matches("#message, .grows")) grow(target); });

/* ---------- approvals: move to the next waiting card; keys that focus but never decide; G, then W goes to the workflows ---------- */

let led = 0; // when the focus was moved: keys typed right after that are not the shortcuts below
const isLeft = (within) => document.activeElement === document.body || within?.contains(document.activeElement);

/* Move the focus to the next element, from the form that was sent or that is gone. If the user has gone elsewhere meanwhile, leave it. */
function lead(to, from) {
  if (!to || !isLeft(from)) return;
  led = Date.now();
  to.scrollIntoView({ block: "nearest" });
  to.focus({ preventScroll: true });
}

const next = () => lead(document.querySelector(".ask") || field);

document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (!isLeft(target)) all("[autofocus]", target).forEach((one) => one.removeAttribute("autofocus")); // as in lead()
});

/* When a form opens on a card, scroll its buttons into view too, not only the focused field. */
document.addEventListener("htmx:afterSettle", ({ target }) => {
  target.closest(".ask")?.querySelector(".acts-form > .line")?.scrollIntoView({ block: "nearest" });
});

let going = 0; // when G was pressed: the next key says where to

document.addEventListener("keydown", (event) => {
  if (Date.now() - led < 1000 || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
  const key = event.key.toLowerCase();
  if (key === "w" && Date.now() - going < 2000) return location.assign("/workflows/");
  going = key === "g" ? Date.now() : 0;
  const to = { a: ".ask .btn.primary", "/": "#q" }[key];
  const found = to && document.querySelector(to);
  if (!found) return;
  event.preventDefault();
  found.focus();
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

mark();
dress(document);
watch();
