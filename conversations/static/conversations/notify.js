// Browser notifications when a turn starts to wait and no page of the site is visible. A click only opens the page.
// The list of conversations is pushed; its `data-asks` is the time of the newest request in a waiting conversation.
"use strict";

(() => {
  const list = document.querySelector(".convs");
  if (!list || !("Notification" in window)) return;
  const waiting = () => [...list.querySelectorAll("[data-asks]")];
  const asks = () => Object.fromEntries(waiting().map(({ id, dataset }) => [id, Number(dataset.asks)]));
  const newTo = (known) => ({ id, dataset }) => Number(dataset.asks) > (known[id] ?? 0); // per conversation: clocks differ
  const say = () => { localStorage.asked = JSON.stringify({ known, at: Date.now() }); }; // for the other windows
  const told = () => {
    const { known, at } = JSON.parse(localStorage.asked || "{}");
    return Date.now() - at < 10_000 ? known : {};
  };
  let known = asks();

  function look() {
    const news = waiting().filter(newTo(known));
    known = asks();
    if (!document.hidden) say(); // it is visible here
    else if (news.length) setTimeout(tell, 500, news); // so that a visible window can announce it first
  }

  function tell(news) {
    if (Notification.permission !== "granted" || localStorage.notices === "off") return;
    news.filter(newTo(told())).forEach(show);
    say();
  }

  function show(link) {
    const title = link.querySelector(".clip").textContent, url = link.href, tag = `${link.id}-${link.dataset.asks}`;
    // Notifications with the same tag from several windows become one.
    const notice = new Notification("Waiting for you", { body: title, tag, icon: document.getElementById("icon")?.href });
    notice.addEventListener("click", () => {
      focus();
      notice.close();
      if (new URL(url).pathname !== location.pathname) location.assign(url);
    });
  }

  new MutationObserver(look).observe(list, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-asks"] });
  document.addEventListener("visibilitychange", look);
  look();
})();
