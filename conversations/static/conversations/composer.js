"use strict";
/* The composer: typed text and chosen files are never lost. Loaded after site.js, whose names it uses. */

const form = byId("composer"), mine = `message ${form?.dataset.person} `, stored = mine + form?.getAttribute("action");

/* ---------- status: why a message was refused, and whether one can be sent ---------- */

function refuse(words) {
  const slot = byId("problem");
  if (!words && slot.dataset.v !== "refused") return; // another message is shown there
  slot.dataset.v = words && "refused";
  slot.replaceChildren(...(words ? [byId("refused").content.cloneNode(true)] : []));
  if (words) slot.querySelector("span").textContent = words;
}

const active = () => form.querySelector("[data-stop]")?.dataset.stop; // the turn that has not ended

function sendable() {
  if (!form) return;
  const send = form.querySelector("[data-send]"), state = main(), line = byId("later");
  field.placeholder = send ? "Message the agent" : "Type your next message";
  if (send) {
    send.disabled = Boolean(state && !state.open && (turns || state.code in CLOSED));
    form.querySelector("[data-offline]").hidden = !send.disabled;
  }
  if ("turn" in line.dataset && active() && line.dataset.turn !== active()) tellLater(""); // it tells how an earlier turn ended
  offerLater();
  sendLater();
}

/* ---------- the message that is not sent yet: {text, files, tier, key, linked, sent}, kept over a reload ---------- */

/* The key makes sure that it is taken once, however often it is sent: again after a reload, or from a copy of this tab. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const above = (text, other) => [text, other].filter(Boolean).join("\n");
const draft = { key: newKey() };
let sent = null; // the message being sent: {text, files, key}, and whether it is `shown` instead of standing in the field

function store() {
  const before = sent?.shown ? { text: sent.text, key: sent.key } : undefined; // the one that is on its way
  Object.assign(draft, { text: field.value, files: chosen.length, tier: form.querySelector("[name=model]:checked")?.value, sent: before });
  if (draft.text || draft.files || before) sessionStorage.setItem(stored, JSON.stringify(draft));
  else sessionStorage.removeItem(stored);
}

/* Text or files were changed: if the message is being sent, this is the next one. */
function edited() {
  if (draft.key === sent?.key) draft.key = newKey();
  dropLater();
}

/* What was on its way when the page was left: it is in the conversation now, or else in the field, above what was typed meanwhile. */
function recover() {
  const { sent: before } = draft;
  delete draft.sent;
  if (!before) return;
  if (draft.key === before.key) draft.key = newKey();
  Object.assign(draft, cameWith(before.key) ? { files: 0 } : { text: above(before.text, draft.text), key: before.key, since: undefined });
}

function restore() {
  Object.assign(draft, JSON.parse(sessionStorage.getItem(stored)));
  recover();
  const given = new URLSearchParams(location.search).get("message"), { text = "", files = 0, since } = draft;
  if (given) { // from a link; what was typed before stays above it, what another link gave does not
    const typed = text === draft.linked && !since ? "" : text;
    field.value = above(typed, field.value);
    draft.linked = typed ? "" : field.value;
    history.replaceState(null, "", location.pathname + location.hash);
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }
  field.value ||= text;
  grow(field);
  chosen.push(...picker.files); // a browser may keep them across a reload
  for (const tier of all("[name=model]", form)) if (tier.value === draft.tier) tier.checked = true;
  showChosen();
  if (files > chosen.length) dropLater("Reloading the page removed your files: attach them again.");
  else if (since && field.value !== text) dropLater("A link added to your message, so it is not sent by itself. You can still send it.");
  else if (Date.now() - since > LATEST) dropLater("You wrote this some hours ago, so it is not sent by itself. You can still send it.");
  else if (since) tellLater(WAITS);
  store();
}

/* ---------- a message that is kept until a turn ends: it has the `turn`, and `since` when it waits for it ---------- */

const WAITS = "Your message is kept here. It will be sent when this turn ends, if this page is still open.";
const TRIES = "Your message is kept here. The site did not answer, so it will be sent again, if this page is still open.";
const LATEST = 4 * 3600 * 1000; // milliseconds: a tab that is restored after that does not surprise anybody
const NOT_SENT = { failed: "failed", cancelled: "was stopped" }; // after a turn that ended so, it is not sent
let tries = 0, retryAt = 0; // how often the site did not answer, and when to try again

function keepLater() {
  if (draft.key === sent?.key) return; // it is being sent
  if (!field.value.trim() && chosen.every((file) => sent?.files.includes(file))) return refuse("Write something first.");
  draft.turn = active(); // none yet while a message is on its way: then `over` tells which
  draft.since ??= Date.now();
  store();
  refuse("");
  tellLater(WAITS);
  offerLater();
}

/* It stays in the field, and is not sent by itself any more. `words`: why, if that is not obvious. */
function dropLater(words = "") {
  delete draft.turn;
  delete draft.since;
  tries = retryAt = 0;
  store();
  tellLater(words);
  offerLater();
}

function tellLater(words) {
  const line = byId("later"), says = line.querySelector("span");
  delete line.dataset.turn;
  line.hidden = !words;
  if (says.textContent !== words) says.textContent = words;
  line.querySelector("button").hidden = !draft.since;
}

/* While a turn runs, the button beside Stop does what Enter does. */
function offerLater() {
  const button = form.querySelector("[data-later]");
  if (button) button.hidden = Boolean(draft.since) || draft.key === sent?.key || !(field.value.trim() || chosen.length);
}

/* Once its turn has ended. If another one runs by then, the site says whether it was this message's: then it takes it once. */
function sendLater() {
  if (!draft.since || sent || !main()?.open || Date.now() < retryAt || (active() && active() === draft.turn)) return;
  const { ended, how } = byId("act").dataset;
  if (ended !== draft.turn || !NOT_SENT[how]) return form.requestSubmit(form.querySelector("[data-send]"));
  dropLater(`This turn ${NOT_SENT[how]}, so your message was not sent. It is still here: you can still send it.`);
  byId("later").dataset.turn = active() ?? "";
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
  edited();
}

function showChosen() {
  const transfer = new DataTransfer(), list = byId("chosen");
  chosen.forEach((file) => transfer.items.add(file));
  picker.files = transfer.files;
  list.hidden = !chosen.length;
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
    edited();
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

function submitted(event) {
  if (event.target !== form || event.submitter?.matches("[data-stop]")) return;
  if (!sent && (field.value.trim() || chosen.length)) {
    store();
    byId("key").value = draft.key;
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
  if (sent?.shown) return keepLater(); // what stands in the field is the next message
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
  const { status, responseText } = detail.xhr, { text, files, key, shown } = sent, away = detail.xhr.getResponseHeader("HX-Redirect");
  const taken = status > 199 && status < 300 && (away || responseText.includes('hx-swap-oob="merge"')); // not a page to sign in
  if (!taken || !away) sent = null; // otherwise the page navigates to the conversation
  else sent.shown = false;
  byId("sending").hidden = true;
  byId("chosen").inert = false;
  if (shown && !away) hideOwn(); // by now its turn is there, if it was taken
  if (shown && !taken) putBack(text);
  if (!taken) return refused(detail.xhr, key);
  chosen.splice(0, chosen.length, ...chosen.filter((file) => !files.includes(file)));
  showChosen();
  if (draft.key !== key) { // the next message is there already
    if (field.value === text && !draft.since && !shown) field.value = "";
    if (draft.since) draft.turn = active() ?? byId("act").dataset.ended;
    store();
    return sendLater();
  }
  const auto = Boolean(draft.since);
  field.value = "";
  draft.key = newKey();
  dropLater();
  refuse("");
  grow(field);
  if (auto) return announce("Your message was sent."); // whoever reads meanwhile is left where they are
  toEnd();
  if (!matchMedia("(pointer: coarse)").matches) lead(field, form);
}

/* What could not be sent stands in the field again, above what was typed meanwhile. */
function putBack(text) {
  field.value = above(text, field.value);
  grow(field);
  dropLater();
}

function refused(xhr, key) {
  const { status } = xhr, mine = draft.key === key, slot = byId("problem");
  if (xhr.getResponseHeader("Content-Type")?.startsWith("text/plain")) refuse(`Not sent. ${xhr.responseText}`); // one sentence, from before any page
  else if (status === 413) refuse("Not sent: this is more than the site accepts at once. Remove a file, or send them one by one.");
  if (status < 400 || [502, 503, 504].includes(status)) { // nobody knows whether it arrived
    if (mine && draft.since) {
      tries += 1;
      retryAt = Date.now() + 1000 * Math.min(2 ** tries, 30);
      tellLater(TRIES);
    } else if (!draft.since) draft.key = key; // what is typed by now is not sent before the site has said that it did not
    return store();
  }
  if (status === 409 && "later" in slot.dataset) {
    delete slot.dataset.later;
    slot.replaceChildren();
    retryAt = Date.now() + 1000;
    if (mine) return keepLater();
    return draft.since ? undefined : dropLater("Not sent: a turn has not ended yet.");
  }
  if (mine && byId("key").value !== key) draft.key = newKey(); // the key was that of another message
  if (mine) dropLater();
}

async function unreadable(files) {
  const gone = [];
  for (const file of files) await file.slice(0, 1).arrayBuffer().catch(() => gone.push(file.name));
  if (!gone.length) return;
  dropLater();
  refuse(`Not sent: ${gone.join(", ")} was changed or removed after it was attached. Remove it here and attach it again.`);
}

if (form) {
  for (const key of Object.keys(sessionStorage)) // somebody else may have been signed in before in this tab
    if (key.startsWith("message ") && !key.startsWith(mine)) sessionStorage.removeItem(key);
  byId("main").append(byId("drop")); // so that it covers the whole thread
  restore();
  field.addEventListener("input", () => { refuse(""); edited(); });
  form.addEventListener("change", ({ target }) => { if (target.name === "model") store(); });
  byId("later").querySelector("button").addEventListener("click", () => { dropLater(); field.focus(); });
  form.addEventListener("click", ({ target }) => { if (target.closest("[data-later]")) { keepLater(); field.focus(); } });
  field.addEventListener("keydown", pressed);
  picker.addEventListener("change", () => { attach(picker.files); field.focus(); });
  document.addEventListener("paste", paste);
  for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, drag);
  document.addEventListener("submit", submitted, true);
  form.addEventListener("htmx:configRequest", ({ detail }) => { // htmx takes the address of a button that has the focus
    if (detail.elt === form) detail.path = form.getAttribute("action");
  });
  form.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt !== form) return;
    sent = { text: field.value, files: [...chosen], key: draft.key, shown: !draft.since && showable(field.value) };
    byId("chosen").inert = true;
    if (!sent.shown) return;
    showOwn(sent); // the request has what was in the field
    field.value = "";
    grow(field);
    store();
  });
  document.addEventListener("htmx:wsOpen", () => { retryAt = 0; }); // the connection is back
  form.addEventListener("htmx:xhr:progress", progress);
  form.addEventListener("htmx:afterRequest", over);
  form.addEventListener("htmx:sendError", ({ detail }) => { if (detail.elt === form) unreadable(chosen); });
  byId("sending").querySelector("button").addEventListener("click", () => { dropLater(); htmx.trigger(form, "htmx:abort"); });
  addEventListener("pageshow", (event) => { if (event.persisted && !turns) location.reload(); }); // it may have been sent since
  if (!turns && !location.search && !matchMedia("(pointer: coarse)").matches && isLeft()) field.focus();
  sendable();
}
