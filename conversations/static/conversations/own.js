"use strict";
/* The own message, shown as soon as it is sent, until the site's turn with its key is there. Loaded after site.js, whose names it uses. */

const own = byId("own"); // only in a conversation

/* Whether it can be shown before the site has answered: a line with "/" may start something, and lead to another page. */
const showable = (text) => Boolean(own && text.trim()) && !text.trimStart().startsWith("/");

/* Its files stay where they were chosen, beside how far they are. */
function showOwn({ text, key }) {
  const made = byId("own-said").content.cloneNode(true);
  made.querySelector(".typed").textContent = text.trim();
  own.dataset.key = key;
  own.replaceChildren(made);
  toEnd();
}

function hideOwn() {
  own?.replaceChildren();
  delete own?.dataset.key;
}

/* Whether the turn that was sent with this key is on the page. */
const cameWith = (key) => all("[data-key]", turns ?? document).some((one) => one.dataset.key === key);

/* The turns that were added: with the own one among them, the message is not shown twice. */
function ownCame(added) {
  if (own?.dataset.key && added.some((one) => one.dataset.key === own.dataset.key)) hideOwn();
}
