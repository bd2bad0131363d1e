"use strict";
/* Diagrams: the source stands until the picture has come, then both change places in one step. Loaded after site.js, whose
   names it uses. Without JavaScript there are the picture and its source. */

const LEAST = .65, PANS = .85; // the smallest scale in the conversation, and that of a picture which does not fit even then
const MOST = 4, STEP = 1.25; // the largest scale in the dialog, and what one click does
const ASKED_MOST = 5; // of a picture that the site was too busy to draw
const came = new Map(); // sizes of the pictures that have come, by address: shown again, they take their place at once
const reasons = new Map(); // why there is no picture, by address: shown again, the reason is there at once

const system = matchMedia("(prefers-color-scheme: dark)");
/* By the theme, not by its computed style: asking for that lays out the whole page. */
const shownPicture = (figure) => figure.querySelector(`.on-${document.documentElement.dataset.theme || (system.matches ? "dark" : "light")}`);

function dressDiagrams(within) {
  for (const figure of [...(within.matches?.("figure.diagram") ? [within] : []), ...all("figure.diagram", within)]) {
    if ("dressed" in figure.dataset) continue;
    figure.dataset.dressed = "";
    figure.querySelector(".code-head").append(byId("diagram-acts")?.content.cloneNode(true) ?? "");
    for (const img of all("img", figure)) {
      img.addEventListener("load", () => arrive(figure, img));
      img.addEventListener("error", () => explain(figure, img));
    }
    const img = shownPicture(figure);
    if (img?.complete && img.naturalWidth) arrive(figure, img);
    else if (came.has(img?.src)) {
      img.loading = "eager";
      fit(figure, ...came.get(img.src));
    } else if (reasons.has(img?.src)) fail(figure, reasons.get(img.src));
    else wait(figure);
  }
}

function wait(figure) {
  figure.classList.add("waiting");
  figure.querySelector("details").open = true;
}

function arrive(figure, img) {
  const end = atEnd(), details = figure.querySelector("details"), waited = figure.matches(".waiting");
  came.set(img.src, [img.naturalWidth, img.naturalHeight]);
  fit(figure, img.naturalWidth, img.naturalHeight);
  figure.classList.remove("waiting", "failed");
  figure.querySelector(".reason")?.remove();
  if (waited && !("set" in details.dataset)) details.open = false;
  if (end) toEnd();
}

/* Both pictures get the size of the one that came: its own, or what fits into its box, as long as one can read it. */
function fit(figure, width, height) {
  const room = (figure.clientWidth || 720) - 34, fitting = (scale) => scale < LEAST ? PANS : Math.min(scale, 1);
  const scale = Math.min(fitting(room / width), fitting(.7 * innerHeight / height));
  for (const img of all("img", figure)) Object.assign(img, { width: width * scale, height: height * scale });
  figure.querySelector(".canvas").classList.toggle("pans", width * scale > room);
}

/* Say why there is no picture; the source stays. A busy site is asked again. */
async function explain(figure, img) {
  if (reasons.has(img.src)) return fail(figure, reasons.get(img.src));
  const answer = await fetch(img.src).catch(() => null), tries = Number(img.dataset.tries || 0);
  if (tries < ASKED_MOST && (answer?.ok || answer?.status === 503)) {
    img.dataset.tries = tries + 1;
    setTimeout(() => { img.src = img.getAttribute("src"); }, 1000 * Number(answer.headers.get("Retry-After") || 1));
    return;
  }
  const plain = answer?.headers.get("Content-Type")?.startsWith("text/plain");
  const words = `Not drawn. ${plain ? await answer.text() : "The picture could not be loaded."}`;
  if (answer?.status === 422) reasons.set(img.src, words); // for good: it is the source that is wrong
  fail(figure, words);
}

function fail(figure, why) {
  const end = atEnd(), words = document.createElement("p");
  words.className = "reason";
  words.textContent = why;
  wait(figure);
  figure.classList.add("failed");
  figure.querySelector(".reason")?.remove();
  figure.append(words);
  if (end) toEnd();
}

/* ---------- the buttons in the head ---------- */

const fileName = (kind) => `${(byId("name")?.textContent.trim() || "diagram").replace(/[\\/:*?"<>|]+/g, " ")}.${kind}`;

function save(address, kind) {
  const link = Object.assign(document.createElement("a"), { href: address, download: fileName(kind) });
  link.click();
}

/* A PNG in twice the size, on the page's background. */
function savePng(img) {
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  canvas.width = 2 * img.naturalWidth;
  canvas.height = 2 * img.naturalHeight;
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(img, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    if (!blob) return announce("The PNG could not be made: the diagram is too large.");
    const address = URL.createObjectURL(blob);
    save(address, "png");
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  });
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-diagram]"), figure = button?.closest("figure.diagram");
  if (!figure) return;
  const img = shownPicture(figure), act = button.dataset.diagram;
  if (act === "zoom") zoom(img, figure.querySelector(".canvas").getAttribute("aria-label"));
  else if (act === "svg") save(img.src, "svg");
  else if (act === "png") savePng(img);
});

/* ---------- zoom: a dialog in which the picture is enlarged, and moved by scrolling or dragging ---------- */

function zoom(of, kind) {
  const dialog = byId("diagram-zoom").content.cloneNode(true).firstElementChild, box = dialog.querySelector(".zoom-pane");
  const img = box.appendChild(Object.assign(new Image(), { src: of.src, alt: of.alt, draggable: false }));
  const { naturalWidth: width, naturalHeight: height } = of;
  let scale = 1;
  const whole = () => Math.min((box.clientWidth - 32) / width, (box.clientHeight - 32) / height);
  const show = (next) => {
    const x = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth, y = (box.scrollTop + box.clientHeight / 2) / box.scrollHeight;
    scale = Math.min(MOST, Math.max(Math.min(whole(), 1) / 2, next));
    img.width = Math.round(width * scale);
    img.height = Math.round(height * scale);
    box.scrollTo(x * box.scrollWidth - box.clientWidth / 2, y * box.scrollHeight - box.clientHeight / 2);
    dialog.querySelector("output").textContent = `${Math.round(scale * 100)} %`;
  };
  dialog.querySelector("h2").textContent = kind;
  dialog.addEventListener("click", ({ target }) => {
    const act = target.closest("[data-zoom]")?.dataset.zoom;
    if (act === "in") show(scale * STEP);
    else if (act === "out") show(scale / STEP);
    else if (act === "fit") show(whole());
    else if (act === "close" || target === dialog) dialog.close();
  });
  box.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" && event.buttons === 1) box.scrollBy(-event.movementX, -event.movementY);
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // a plain wheel scrolls
    event.preventDefault();
    show(scale * (event.deltaY < 0 ? STEP : 1 / STEP));
  }, { passive: false });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  show(whole() < LEAST ? 1 : Math.min(whole(), 2));
}
