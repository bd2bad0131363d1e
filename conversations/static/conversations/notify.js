// A notice of the browser when a turn begins to wait and no page of the site is in view. It opens the page, no more.
// The list of conversations is what is pushed: `data-asks` says when one that waits was last asked about.
"use strict";

(() => {
  const list = document.querySelector(".convs");
  if (!list || !("Notification" in window)) return;
  const waiting = () => [...list.querySelectorAll("[data-asks]")];
  const asks = () => Object.fromEntries(waiting().map(({ id, dataset }) => [id, Number(dataset.asks)]));
  const newTo = (known) => ({ id, dataset }) => Number(dataset.asks) > (known[id] ?? 0); // each for itself: clocks differ
  const say = () => { localStorage.asked = JSON.stringify({ known, at: Date.now() }); }; // to the other windows
  const told = () => {
    const { known, at } = JSON.parse(localStorage.asked || "{}");
    return Date.now() - at < 10_000 ? known : {};
  };
  let known = asks();

  function look() {
    const news = waiting().filter(newTo(known));
    known = asks();
    if (!document.hidden) say(); // it is seen here
    else if (news.length) setTimeout(tell, 500, news); // after a window in view has had time to say so
  }

  function tell(news) {
    if (Notification.permission !== "granted" || localStorage.notices === "off") return;
    news.filter(newTo(told())).forEach(show);
    say();
  }

  function show(link) {
    const title = link.querySelector(".clip").textContent, url = link.href, tag = `${link.id}-${link.dataset.asks}`;
    // The tag makes one notice of those that several windows show.
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
