"use strict";
/* The inbox: rows open beside the list, keys, and what happens elsewhere. Loaded after the scripts of every page, whose names it uses. */
(() => {
  const HOLD = 1000; // milliseconds between two looks at what changed elsewhere
  const inbox = document.querySelector(".inbox"), single = matchMedia("(max-width: 63.99rem)");
  const item = () => byId("inbox-item");
  const rows = () => all(".row > a", byId("inbox-list"));
  let at = 0; // where the row is, or was, that is open
  let asked = 0; // counts requests: an answer that is not to the last one is dropped
  let opening = 0; // how many cards are being opened: what changed elsewhere has to wait
  let clicked; // the card on which a click, or the first of several, fell

  const place = () => {
    const now = rows().findIndex((row) => row.hasAttribute("aria-current"));
    if (now >= 0) at = now;
    return now;
  };
  const hasTyped = () => all(".acts-form :is(textarea, select, input:not([type=hidden]))", item()).some(changed);

  /* What the server shows at an address; null if there is nothing, undefined if it was asked for something else since. */
  async function get(address) {
    const mine = (asked += 1);
    try {
      const answer = await fetch(address, { headers: { ...headers(), "HX-Request": "true" } });
      if (answer.headers.get("X-Person")) return another(), null;
      if (answer.redirected) return location.reload(), null; // signed out
      const html = answer.ok ? await answer.text() : null;
      return mine === asked ? html : undefined;
    } catch {
      if (opening) announce("The site could not be reached.");
      return null;
    }
  }

  function show(html) {
    take(html);
    place();
  }

  /* The address of the page is that of what it shows. */
  function settle(push, list) {
    const { address, list: listed } = item().dataset, now = list ? listed : address;
    if (push && now !== location.pathname + location.search) history.pushState(null, "", now);
    const one = !list && address !== listed;
    document.body.classList.toggle("view-item", one);
    document.body.classList.toggle("view-inbox", !one);
  }

  async function open(address, push = true) {
    if (hasTyped() && !confirm("Discard what you typed?")) return;
    opening += 1;
    const html = await get(address);
    opening -= 1;
    if (!html) return;
    item().replaceChildren(); // what was typed into it is not kept
    delete item().dataset.v;
    show(html);
    settle(push, address === item().dataset.list && single.matches);
    lead(document.querySelector(".solo"), item());
    led = 0; // nobody was typing
    rows()[at]?.scrollIntoView({ block: "nearest" });
  }

  function step(by) {
    const now = place(), to = now < 0 && by > 0 ? at : at + by; // if the row is gone, the next one has its place
    const row = rows()[to];
    if (row) return void open(row.href);
    const older = document.querySelector("[data-older]");
    if (by > 0 && older) open(older.href);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest(".row > a, .inbox-more a, .inbox-next a, .to-list");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.matches(".inbox-next a")) step(1);
    else if (link.matches(".to-list")) settle(true, true);
    else open(link.href);
  });
  addEventListener("popstate", () => open(location.href, false));

  /* The second click of a double click was meant for the card that was there at the first. */
  document.addEventListener("click", (event) => {
    const card = event.target.closest(".solo")?.id;
    if (event.detail <= 1) clicked = card;
    if (card === clicked) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);

  /* ---------- decisions, and filters ---------- */

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    asked += 1; // its answer is newer
    if (detail.elt.matches(".inbox-filters") && hasTyped() && !confirm("Discard what you typed?")) detail.xhr.abort();
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const { status } = detail.xhr, filtered = detail.elt.matches(".inbox-filters");
    if (status !== 200 || !(filtered || detail.elt.matches("[data-decides]"))) return;
    place();
    settle(true, filtered && single.matches);
    led = 0;
    rows()[at]?.scrollIntoView({ block: "nearest" });
  });

  /* ---------- what happens elsewhere ---------- */

  let looked = 0, due = 0;

  function look() {
    clearTimeout(due);
    const early = looked + HOLD - Date.now();
    if (early > 0) return void (due = setTimeout(look, early));
    looked = Date.now();
    refresh();
  }

  async function refresh() {
    const card = item().querySelector(".ask")?.dataset.card, { address, list } = item().dataset;
    if (opening || inbox.querySelector(".htmx-request")) return void (due = setTimeout(look, HOLD));
    let html = await get(address);
    if (html === null && address !== list) html = await get(list); // the card is gone
    if (html === undefined) return void (due = setTimeout(look, HOLD));
    if (html === null) return;
    show(html);
    const now = item().querySelector(".solo");
    if (card && !now?.matches(".ask") && now?.id === `a-${card.split(":")[0]}`)
      announce(`Decided elsewhere: ${now.querySelector(".verdict").textContent.trim()}`);
  }

  document.addEventListener("htmx:wsBeforeMessage", ({ target }) => { if (target === inbox) look(); });

  /* ---------- several ---------- */

  document.addEventListener("change", ({ target }) => {
    if (!target.matches(".pick input")) return;
    const button = document.querySelector(".several .btn"), most = Number(button.parentElement.dataset.most);
    const count = all(".pick input:checked").length;
    button.disabled = count > most;
    button.textContent = count > most ? `Select at most ${most}` : count > 1 ? `Decide ${count} together` : "Decide the selected";
  });

  /* ---------- keys: they move, and open forms; none decides ---------- */

  /* What this names on the card; null while the list is shown alone. */
  const seen = (selector) => (item().checkVisibility() ? item().querySelector(selector) : null);
  const ACTS = {
    j: () => step(1),
    k: () => step(-1),
    a: () => {
      const to = seen(".btn.primary, .choice, .replies .btn");
      if (to) (passwordOf(to) || to).focus();
    },
    e: () => seen('[data-opens="edit"]')?.click(),
    r: () => seen('[data-opens="reject"]')?.click(),
    o: () => seen('[data-opens="conversation"]')?.click(),
    "/": () => byId("iq").focus(),
    "?": () => byId("keys").togglePopover(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
    const act = ACTS[event.key.toLowerCase()];
    if (!act || goes()) return;
    event.preventDefault();
    event.stopPropagation(); // the keys of every page are others
    act();
  }, true);

  place();
})();
