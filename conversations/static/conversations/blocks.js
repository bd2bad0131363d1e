"use strict";
/* Parts of a block that need JavaScript: copying, images, and relative times. Loaded after site.js and diagrams.js, whose names it uses. */

function dress(within) {
  const template = byId("copy");
  if (template && navigator.clipboard)
    for (const head of all(".code-head, .cmd-head", within))
      if (!head.querySelector("[data-copy]")) head.append(template.content.cloneNode(true));
  dressDiagrams(within);
  dressImages(within);
  tell();
}

/* What became of the images in texts, by address: when a text that has streamed is recorded, they take their place at once. */
const loaded = new Set(), unloaded = new Set();

function dressImages(within) {
  for (const image of all("img.own", within)) {
    if (loaded.has(image.src)) image.loading = "eager";
    else if (unloaded.has(image.src)) {
      const words = unseen(image), again = new Image(); // the agent may have made the file by now
      again.addEventListener("load", () => words.replaceWith(image));
      again.src = image.src;
    }
  }
}

/* An image that cannot be loaded becomes its words, which are returned. */
function unseen(image) {
  const words = document.createElement("span");
  words.className = "not-shown";
  words.textContent = image.alt ? `[Image not shown: ${image.alt}]` : "[Image not shown]";
  image.replaceWith(words);
  return words;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const box = button.closest(".code, .cmd, .diagram"), lines = all(".ln", box);
  const shown = () => lines.length ? lines.map((line) => line.textContent).join("\n") : box.querySelector("code").textContent;
  await navigator.clipboard.writeText(box.dataset.line ?? shown());
  announce("Copied");
  button.lastElementChild.textContent = "Copied";
  setTimeout(() => { button.lastElementChild.textContent = "Copy"; }, 2000);
});

/* A link to the text of a message or an answer as it was written copies it. Ctrl opens it, as without JavaScript. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-source]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  try { // Safari lets a page write only in the click itself, so the text is promised
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": source(link.href) })]);
    copied(link, "Copied");
  } catch {
    copied(link, "Not copied: the text could not be fetched.");
  }
});

async function source(address) {
  const answer = await fetch(address);
  if (!answer.headers.get("Content-Type")?.startsWith("text/plain") || !answer.ok) throw new Error(answer.status); // signed out
  return new Blob([await answer.text()], { type: "text/plain" });
}

function copied(link, words) {
  const label = link.querySelector("span");
  announce(words);
  label.textContent = words;
  label.hidden = false;
  setTimeout(() => { label.hidden = true; }, 2000);
}

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

dress(document);
