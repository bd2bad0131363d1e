"use strict";
/* The composer: typed text and chosen files are never lost. Loaded after site.js, whose names it uses. */

const form = byId("composer"), mine = `draft ${form?.dataset.person} `;
const kept = mine + form?.getAttribute("action"), waits = `${kept} later`;

/* ---------- status: why a message was refused, and whether one can be sent ---------- */

function refuse(words) {
  const slot = byId("problem");
  if (!words && slot.dataset.v !== "refused") return; // another message is shown there
  slot.dataset.v = words && "refused";
  slot.replaceChildren(...(words ? [byId("refused").content.cloneNode(true)] : []));
  if (words) slot.querySelector("span").textContent = words;
}

function sendable() {
  const send = form?.querySelector("[data-send]");
  if (!form) return;
  field.placeholder = send ? "Message the agent" : "Type your next message";
  offerLater();
  if (!send) return;
  send.disabled = Boolean(turns && main() && !main().open);
  form.querySelector("[data-offline]").hidden = !send.disabled;
  if (!send.disabled) sendLater(send);
}

/* ---------- a message that is kept until the turn ends: {text, files, key, turn}, also over a reload ---------- */

const WAITS = "Your message is kept here, and will be sent when this turn has ended.";
let later = null;

/* Keep what is in the field, and send it when this turn has ended. Its key makes sure that it is taken once, also from a copy of this tab. */
function keepLater() {
  if (!field.value.trim() && !chosen.length) return refuse("Write something first.");
  later = { text: field.value, files: chosen.length, key: later?.key ?? byId("key").value };
  refuse("");
  tellLater(WAITS);
  offerLater();
}

/* It stays in the field, and is not sent by itself any more. `words`: why, if that is not obvious. */
function dropLater(words = "") {
  if (!later && byId("later").hidden) return;
  later = null;
  sessionStorage.removeItem(waits);
  tellLater(words);
  offerLater();
}

function tellLater(words) {
  const line = byId("later");
  line.hidden = !words;
  line.querySelector("span").textContent = words;
  line.querySelector("button").hidden = !later;
}

/* Store what is kept, with the turn that it waits for. While one runs, the button beside Stop does what Enter does. */
function offerLater() {
  const stop = form.querySelector("[data-stop]"), button = form.querySelector("[data-later]");
  if (later && stop) later.turn = stop.dataset.stop;
  if (later) sessionStorage.setItem(waits, JSON.stringify(later));
  if (button) button.hidden = Boolean(later) || !(field.value.trim() || chosen.length);
}

function sendLater(send) {
  if (!later || sent) return;
  const { last, ended } = byId("act").dataset;
  if (last === later.turn && ["failed", "cancelled"].includes(ended))
    return dropLater(`This turn ${ended === "failed" ? "failed" : "was stopped"}, so your message was not sent. It is still here: send it when you like.`);
  byId("key").value = later.key;
  form.requestSubmit(send);
}

function restoreLater() {
  later = JSON.parse(sessionStorage.getItem(waits));
  if (!later) return;
  if (later.text !== field.value) return dropLater();
  if (later.files !== chosen.length) return dropLater("Not sent: attach your files again. A page that is loaded again does not have them.");
  tellLater(WAITS);
}

/* ---------- files: the input holds all chosen files, whether picked, pasted or dropped ---------- */

const picker = form?.querySelector("[type=file]"), chosen = [];

function size(bytes) { // the same format as on the server
  if (bytes < 1024) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

function attach(files) {
  const most = Number(form.dataset.files), mb = Number(form.dataset.mb), large = [], many = [];
  for (const file of files) {
    const same = (one) => one.name === file.name && one.size === file.size && one.lastModified === file.lastModified;
    if (chosen.some(same)) continue;
    if (file.size > mb * 1024 ** 2) large.push(`${file.name} (${size(file.size)})`);
    else if (chosen.length === most) many.push(file.name);
    else chosen.push(file);
  }
  const why = [];
  if (large.length) why.push(`Not attached, because a file can have up to ${mb} MB: ${large.join(", ")}.`);
  if (many.length) why.push(`Not attached, because a message can have up to ${most} files: ${many.join(", ")}.`);
  refuse(why.join(" "));
  showChosen();
}

function showChosen() {
  const transfer = new DataTransfer(), list = byId("chosen");
  chosen.forEach((file) => transfer.items.add(file));
  picker.files = transfer.files;
  list.hidden = !chosen.length;
  dropLater();
  offerLater();
  list.replaceChildren(...chosen.map(chip));
}

function chip(file) {
  const made = byId("chip").content.cloneNode(true), button = made.querySelector("button");
  made.querySelector(".name").textContent = made.querySelector(".chip").title = file.name;
  made.querySelector(".size").textContent = size(file.size);
  button.setAttribute("aria-label", `Remove ${file.name}`);
  button.addEventListener("click", () => {
    const at = chosen.indexOf(file);
    chosen.splice(at, 1);
    refuse("");
    showChosen();
    (all("#chosen button")[Math.min(at, chosen.length - 1)] || field).focus();
  });
  return made;
}

function named(file) { // pasted images all have the same name
  if (!/^image\.\w+$/.test(file.name)) return file;
  const end = file.name.slice(5), taken = (number) => chosen.some((one) => one.name === `pasted-${number}${end}`);
  let number = 1;
  while (taken(number)) number += 1;
  return new File([file], `pasted-${number}${end}`, { type: file.type, lastModified: file.lastModified });
}

function paste(event) {
  const { files, types } = event.clipboardData, other = event.target.closest("input, textarea, [contenteditable]");
  const text = types.includes("text/plain") && (types.includes("text/html") || types.includes("text/rtf")); // text that comes with an image of itself
  if (!files.length || text || (other && other !== field)) return;
  event.preventDefault();
  for (const file of files) attach([named(file)]);
}

function drag(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault(); // otherwise the browser would leave the page and open the file
  const here = event.type !== "dragleave" && byId("main").contains(event.target);
  event.dataTransfer.dropEffect = here ? "copy" : "none";
  byId("drop").hidden = !here || event.type === "drop";
  if (event.type !== "drop" || !here) return;
  const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
  const folders = items.filter((item) => item.webkitGetAsEntry?.()?.isDirectory);
  attach(items.filter((item) => !folders.includes(item)).map((item) => item.getAsFile()));
  if (folders.length) refuse("A folder cannot be attached: choose the files in it.");
  field.focus({ preventScroll: true });
}

/* ---------- sending ---------- */

let sent = null; // the message being sent: {text, files}

function submitted(event) {
  if (event.target !== form || event.submitter?.matches("[data-stop]")) return;
  if (!sent && (field.value.trim() || chosen.length)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (sent) return;
  refuse("Write something first.");
  field.focus();
}

function pressed(event) {
  if (event.key !== "Enter" || event.shiftKey || matchMedia("(pointer: coarse)").matches) return;
  if (event.isComposing || event.keyCode === 229) return; // the key ends an input method's word; Safari reports only 229
  event.preventDefault();
  const send = form.querySelector("[data-send]");
  if (!send) keepLater();
  else if (!send.disabled) form.requestSubmit(send);
}

function progress({ detail }) {
  const whole = sent && sent.files.reduce((sum, file) => sum + file.size, 0);
  if (!whole || whole < 500_000 || detail.total < whole) return; // the response reports progress too
  const line = byId("sending");
  line.hidden = false;
  line.querySelector("progress").value = (100 * detail.loaded) / detail.total;
  const words = `Sending ${size(whole)}…`, says = line.querySelector("[role=status]");
  if (says.textContent !== words) says.textContent = words;
}

function over({ detail }) {
  if (detail.elt !== form) return;
  const { text, files } = sent, { status } = detail.xhr, away = status < 300 && detail.xhr.getResponseHeader("HX-Redirect");
  if (!away) sent = null; // otherwise the page navigates to the conversation
  byId("sending").hidden = true;
  byId("chosen").inert = false;
  const plain = detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain"); // one sentence, from before any page
  if (status === 409 && "later" in byId("problem").dataset) {
    byId("problem").replaceChildren();
    return field.value === text ? keepLater() : dropLater("Not sent: a turn has not ended yet.");
  }
  const auto = Boolean(later);
  dropLater();
  if (status > 399 && plain) refuse(`Not sent. ${detail.xhr.responseText}`);
  else if (status === 413) refuse("Not sent: this is more than the site accepts at once. Remove a file, or send them one by one.");
  if (status < 200 || status > 299) return;
  chosen.splice(0, chosen.length, ...chosen.filter((file) => !files.includes(file)));
  showChosen();
  if (field.value === text) field.value = "";
  sessionStorage.setItem(kept, field.value);
  refuse("");
  grow(field);
  if (auto) return announce("Your message was sent."); // whoever reads meanwhile is left where they are
  toEnd();
  if (!matchMedia("(pointer: coarse)").matches) lead(field, form);
}

async function unreadable(files) {
  const gone = [];
  for (const file of files) await file.slice(0, 1).arrayBuffer().catch(() => gone.push(file.name));
  if (gone.length) refuse(`Not sent: ${gone.join(", ")} was changed or removed after it was attached. Remove it here and attach it again.`);
}

if (form) {
  for (const key of Object.keys(sessionStorage)) // somebody else may have been signed in before in this tab
    if (key.startsWith("draft ") && !key.startsWith(mine)) sessionStorage.removeItem(key);
  byId("main").append(byId("drop")); // so that it covers the whole thread
  if (new URLSearchParams(location.search).get("message")) { // from a link; what was typed before stays above it
    field.value = [sessionStorage.getItem(kept), field.value].filter(Boolean).join("\n");
    history.replaceState(null, "", location.pathname + location.hash);
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }
  field.value ||= sessionStorage.getItem(kept) || "";
  grow(field);
  attach(picker.files); // a browser may keep them across a reload
  restoreLater();
  field.addEventListener("input", () => {
    sessionStorage.setItem(kept, field.value);
    refuse("");
    dropLater();
    offerLater();
  });
  byId("later").querySelector("button").addEventListener("click", () => { dropLater(); field.focus(); });
  form.addEventListener("click", ({ target }) => { if (target.closest("[data-later]")) { keepLater(); field.focus(); } });
  field.addEventListener("keydown", pressed);
  picker.addEventListener("change", () => { attach(picker.files); field.focus(); });
  document.addEventListener("paste", paste);
  for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, drag);
  document.addEventListener("submit", submitted, true);
  form.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt !== form) return;
    sent = { text: field.value, files: [...chosen] };
    byId("chosen").inert = true;
  });
  form.addEventListener("htmx:xhr:progress", progress);
  form.addEventListener("htmx:afterRequest", over);
  form.addEventListener("htmx:sendError", ({ detail }) => { if (detail.elt === form) unreadable(chosen); });
  byId("sending").querySelector("button").addEventListener("click", () => htmx.trigger(form, "htmx:abort"));
  addEventListener("pageshow", (event) => { if (event.persisted && !turns) location.reload(); }); // with a new key
  if (!turns && !location.search && !matchMedia("(pointer: coarse)").matches && isLeft()) field.focus();
  sendable();
}
