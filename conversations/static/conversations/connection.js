"use strict";
/* The sockets of the page: when one is lost, show that, count down and reconnect. Loaded after site.js, whose names it uses. */

const sockets = new Map(); // element -> {wrapper, tries, code}, with `open` (since when), `at` (time of the next attempt) or `over` (the reason)
const main = () => sockets.get(turns || document.querySelector("[ws-connect]"));
const SIGN_IN = 4401, ANOTHER = 4409, CLOSED = {
  [SIGN_IN]: "You are signed out.", [ANOTHER]: "Somebody else is signed in in this browser now.",
  4403: "You no longer have access to this page.", 4404: "This conversation was deleted.",
};
const STEADY = 5000, LONGEST = 30_000; // milliseconds: refused sockets open for a moment too; connecting is given up after LONGEST
let asked = 0, again = 0;

htmx.config.wsReconnectDelay = () => 2 ** 30; // htmx does not reconnect: it is done below, where the user can do it now
htmx.createWebSocket = (url) => {
  const query = new URLSearchParams({ person: document.body.dataset.person });
  if (url.includes("/conversations/")) query.set("after", turns.dataset.seq);
  const socket = new WebSocket(`${url}?${query}`);
  setTimeout(() => { if (socket.readyState === WebSocket.CONNECTING) socket.close(); }, LONGEST);
  return socket;
};

document.addEventListener("htmx:wsOpen", ({ target, detail }) => {
  const before = sockets.get(target);
  sockets.set(target, { ...before, wrapper: detail.socketWrapper, open: Date.now() });
  reached();
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
  const kept = state.code === ANOTHER ? "Reload to continue as them. What you typed stays here until then." : "Your draft is kept.";
  strip.querySelector("[data-says]").textContent =
    state.over ? kept : `Reconnecting ${left > 0 ? `in ${left} s` : "now"}. The agent keeps working; your draft is kept.`;
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

/* A request was refused because somebody else is signed in now: so are the sockets, which the page then shows. */
function another() {
  for (const state of sockets.values()) if (!state.over) state.wrapper.reconnect();
}
addEventListener("online", () => { reached(); reconnect(true); });
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
if (turns) pane.addEventListener("scroll", see, { passive: true });
document.addEventListener("visibilitychange", () => { look(); if (!document.hidden) reconnect(true); });

/* Whoever comes back to this window may have signed in again in another one. */
addEventListener("focus", () => {
  for (const state of sockets.values())
    if (state.over && [SIGN_IN, ANOTHER].includes(state.code)) Object.assign(state, { over: "", at: Date.now() });
  reconnect(true);
});
setInterval(() => { if (!document.hidden) look(); }, 10_000);
