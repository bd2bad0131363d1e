"use strict";
/* Files: their previews below their rows, and images that cannot be loaded. Loaded after blocks.js, whose names it uses. */

/* "Show" opens a file below its row, and closes it again. Ctrl opens its page, as without JavaScript; so does whatever fails. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-show]");
  if (!link || !turns?.contains(link) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const row = link.closest(".file"), shown = row.nextElementSibling;
  if (shown?.matches(".preview")) {
    shown.remove();
    return opened(link, false);
  }
  if (link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  const preview = await fetched(link.href);
  link.ariaBusy = null;
  if (!preview) return location.assign(link.href);
  row.after(preview);
  opened(link, true);
  prepare(preview);
});

async function fetched(address) {
  try {
    const answer = await fetch(address, { headers: { "HX-Request": "true", "X-Person": document.body.dataset.person }, redirect: "manual" });
    if (!answer.ok) return null; // also where it leads elsewhere, to sign in
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    return template.content.querySelector(".preview");
  } catch {
    return null; // the site cannot be reached, which the browser says better
  }
}

function opened(link, open) {
  link.textContent = open ? "Hide" : "Show";
  link.ariaLabel = link.ariaLabel.replace(/^\w+/, link.textContent);
  link.ariaExpanded = String(open);
}

/* A browser without a viewer of PDFs, as on most phones, shows a link in place of an empty frame. */
function prepare(within) {
  dress(within);
  if (!navigator.pdfViewerEnabled) for (const one of all("[data-needs-viewer]", within)) one.remove();
}
prepare(document);

/* An image that cannot be loaded becomes its words. These events do not bubble. */
function failed(image) {
  if (image.matches(".thumb")) return image.remove();
  if (!image.matches(".own, .picture > img")) return;
  unloaded.add(image.src);
  unseen(image);
}
document.addEventListener("error", ({ target }) => { if (target instanceof HTMLImageElement) failed(target); }, true);
document.addEventListener("load", ({ target }) => {
  if (!(target instanceof HTMLImageElement) || !target.matches(".own")) return;
  loaded.add(target.src);
  unloaded.delete(target.src);
}, true);
for (const image of document.images) if (image.complete && !image.naturalWidth && image.loading !== "lazy") failed(image);
