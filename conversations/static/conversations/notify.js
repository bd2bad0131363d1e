// Browser notifications of what waits and of what has happened, while no page of the site is visible. A click only opens
// the page. Both are pushed: a waiting conversation in the list has `data-asks`, the time of its newest request; what
// has happened is in #news, which also has the quiet hours, and whether to tell of what waits.
"use strict";

(() => {
  const list = document.querySelector(".convs");
  if (!list || !("Notification" in window)) return;
  const MOST = 3; // shown one by one; more become a single notification
  const news = () => document.getElementById("news");

  // What there is to tell of: of each conversation by its own time, as the clocks of hosts differ; the rest has none.
  function all() {
    const heading = news()?.dataset.waits;
    const asks = [...(heading ? list.querySelectorAll("[data-asks]") : [])].map((link) =>
      ({ id: link.id, time: Number(link.dataset.asks), heading, title: link.querySelector(".clip").textContent, url: link.href }));
    const rest = [...(news()?.children ?? [])].map(({ id, dataset, textContent }) =>
      ({ id, time: 1, heading: dataset.heading, title: textContent, url: new URL(dataset.link, location.origin).href }));
    return [...asks, ...rest];
  }
  const times = () => Object.fromEntries(all().map(({ id, time }) => [id, time]));
  const newTo = (known) => ({ id, time }) => time > (known[id] ?? 0);
  const say = () => { localStorage.asked = JSON.stringify({ known, at: Date.now() }); }; // for the other windows
  const told = () => {
    const { known, at } = JSON.parse(localStorage.asked || "{}");
    return Date.now() - at < 10_000 ? known : {};
  };
  let known = times(), later = 0;

  // How long it stays quiet, in milliseconds.
  function quiet() {
    const [begin, end] = (news()?.dataset.quiet ?? "").split(" ").map(Number), now = Date.now();
    return begin <= now && now < end ? end - now : 0;
  }

  function look() {
    clearTimeout(later);
    const rest = document.hidden ? quiet() : 0;
    if (rest) {
      later = setTimeout(look, rest + 1000); // what is new is still new then, unless somebody has looked
      return;
    }
    const fresh = all().filter(newTo(known));
    known = times();
    if (!document.hidden) say(); // it is visible here
    else if (fresh.length) setTimeout(tell, 500, fresh); // so that a visible window can announce it first
  }

  function tell(fresh) {
    if (Notification.permission !== "granted" || localStorage.notices === "off") return;
    const left = fresh.filter(newTo(told()));
    if (left.length > MOST) {
      const title = left.slice(0, MOST).map((one) => one.title).join(", ") + ", …";
      show({ heading: `${left.length} notifications`, title, url: `${location.origin}/`, id: "many", time: left.map(({ id }) => id).join() });
    } else left.forEach(show);
    say();
  }

  function show({ id, time, heading, title, url }) {
    // Notifications with the same tag from several windows become one.
    const notice = new Notification(heading, { body: title, tag: `${id}-${time}`, icon: document.getElementById("icon")?.href });
    notice.addEventListener("click", () => {
      focus();
      notice.close();
      if (new URL(url).pathname !== location.pathname) location.assign(url);
    });
  }

  const seen = { childList: true, subtree: true, attributes: true, attributeFilter: ["data-asks", "data-v"] };
  new MutationObserver(look).observe(list, seen);
  document.addEventListener("visibilitychange", look);
  look();
})();
