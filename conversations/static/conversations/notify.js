// A notice of the browser when a turn begins to wait and no page of the site is in view. It opens the page, no more.
// The list of conversations is what is pushed: `data-asks` is the newest output of a conversation that waits.
"use strict";

(() => {
  const list = document.querySelector(".convs");
  if (!list || !("Notification" in window)) return;
  const waiting = () => [...list.querySelectorAll("[data-asks]")];
  const newest = () => Math.max(0, ...waiting().map((link) => Number(link.dataset.asks)));
  const say = () => { localStorage.told = `${known} ${Date.now()}`; }; // to the other windows
  const told = () => {
    const [asks, at] = (localStorage.told || "0 0").split(" ").map(Number);
    return Date.now() - at < 10_000 ? asks : 0;
  };
  let known = newest();

  function look() {
    const news = waiting().filter((link) => Number(link.dataset.asks) > known);
    known = Math.max(known, newest());
    if (!document.hidden) say(); // it is seen here
    else if (news.length) setTimeout(tell, 500, news); // after a window in view has had time to say so
  }

  function tell(news) {
    if (Notification.permission !== "granted" || localStorage.notices === "off") return;
    for (const link of news.filter((each) => Number(each.dataset.asks) > told())) show(link);
    say();
  }

  function show(link) {
    const title = link.querySelector(".clip").textContent, asks = link.dataset.asks, url = link.href;
    // The tag makes one notice of those that several windows show.
    const notice = new Notification("Waiting for you", { body: title, tag: `asks-${asks}`, icon: document.getElementById("icon")?.href });
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
