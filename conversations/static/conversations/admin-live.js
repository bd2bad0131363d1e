// Live updates of approvals in the admin: decisions made elsewhere and new requests appear on the page.
//
// The socket only reports that something changed. The content is then fetched from the same URL and replaced. If the
// user is typing or has selected something, a line above the content reports the change instead.
(() => {
  "use strict";

  const SOONEST = 1000, LATEST = 30000; // milliseconds between tries to connect
  const SIGN_IN = 4401, CLOSED = {
    [SIGN_IN]: ["You are signed out: this page may be out of date.", "Sign in again"],
    4403: ["You no longer have access to approvals.", "Reload"],
  };
  const link = () => document.querySelector('#nav-sidebar-apps a[href$="/conversations/approval/"]');
  const content = () => document.getElementById("content-main");
  let wait = SOONEST, refused = 0, fetching = false, again = false;

  function connect() {
    const socket = new WebSocket(location.origin.replace(/^http/, "ws") + "/ws/approvals/");
    socket.addEventListener("message", (event) => { // a refused client gets no message, though its socket opens
      wait = SOONEST;
      refused = 0;
      const said = JSON.parse(event.data);
      if (said.type === "approval.changed") refresh(said.id === null || concerns(said.id)); // null: any approval may have changed since the page was rendered
    });
    socket.addEventListener("close", ({ code }) => {
      const doubted = code === SIGN_IN && refused !== SIGN_IN; // the browser may have a new session, after a change of password in another tab
      if (CLOSED[code] && !doubted) return void (content() && tell(...CLOSED[code]));
      refused = code;
      setTimeout(connect, wait * (0.5 + Math.random()));
      wait = Math.min(wait * 2, LATEST);
    });
  }

  // Whether this page shows the approval: the list and the first page show any.
  function concerns(id) {
    const shown = content();
    if (!shown) return false;
    if ("all" in shown.dataset) return true;
    if (shown.dataset.approvals === undefined) return location.pathname === new URL(link().href).pathname;
    return shown.dataset.approvals.split(/\s+/).some((each) => each.startsWith(`${id}:`));
  }

  let whole = false;
  async function refresh(page) {
    whole = whole || page;
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      do {
        again = false;
        const all = whole;
        whole = false;
        await show(all);
      } while (again);
    } finally {
      fetching = false;
    }
  }

  async function show(page) {
    const answer = await fetch(page ? location.href : link().href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const counted = fresh.querySelector('#nav-sidebar-apps a[href$="/conversations/approval/"]');
    if (counted) link().innerHTML = counted.innerHTML;
    const now = fresh.getElementById("content-main");
    if (!page || !now || !otherwise(now)) return; // do not replace what somebody is about to click without need
    if (busy() || pointed()) return void tell(meanwhile(now), "Show it");
    content().replaceWith(document.adoptNode(now));
    for (const list of document.querySelectorAll(".result-list-wrapper")) {
      const marked = list.querySelectorAll("tr input.action-select");
      if (window.Actions && marked.length) window.Actions(marked, { parent: list }); // the list's own handlers were bound to rows that are gone
    }
  }

  // The state of the content: named by a page, and for the list made of what its rows link to.
  const stands = (shown) =>
    shown.dataset.approvals ?? [...shown.querySelectorAll("tbody a, tbody .badge")].map((each) => each.pathname ?? each.textContent).join();
  const otherwise = (now) => stands(now) !== stands(content());

  // Whether somebody is about to click a row: no other row may move under the pointer.
  const isList = (shown) => shown.dataset.approvals === undefined || "all" in shown.dataset;
  const pointed = () => isList(content()) && content().matches(":hover");

  // Whether the user would lose what they typed or selected, or the reason why it was refused.
  function busy() {
    if ("refused" in content().dataset) return true; // its fields were rendered with what was typed
    return [...content().querySelectorAll("input, textarea, select")].some((field) => {
      if (field.type === "hidden") return false;
      if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
      if (field.tagName === "SELECT") return [...field.options].some((option) => option.selected !== option.defaultSelected);
      return field.value !== field.defaultValue || field === document.activeElement;
    });
  }

  function meanwhile(now) {
    const verdict = [...now.querySelectorAll(".verdict")].map((each) => each.textContent.trim()).join(" · ");
    return verdict ? `In the meantime: ${verdict}.` : "Something changed in the meantime.";
  }

  // Show a line above the content, with a link to the current page.
  function tell(says, leads) {
    let line = document.getElementById("meanwhile");
    if (!line) {
      line = document.createElement("p");
      line.id = "meanwhile";
      line.setAttribute("role", "status");
      content().before(line);
    }
    const words = document.createElement("span"), show = document.createElement("a");
    words.textContent = `${says} `;
    show.href = location.href;
    show.textContent = leads;
    line.replaceChildren(words, show);
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (link()) connect();
  });
})();
