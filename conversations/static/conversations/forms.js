"use strict";
/* Requests of forms, and their responses. Loaded after site.js, whose names it uses. */

/* The CSRF token is that of the cookie: a pushed form has none, and that of a page is old once its user signs in again.
   It may be somebody else who signed in, so whose the page is goes with it. */
const token = () => {
  const name = `${document.body.dataset.csrf}=`;
  return document.cookie.split("; ").find((one) => one.startsWith(name))?.slice(name.length) ?? "";
};
const headers = () => ({ "X-CSRFToken": token(), "X-Person": document.body.dataset.person });

function hold(form, name, value) {
  let input = form.querySelector(`[name=${name}]`);
  if (!input) form.prepend(input = Object.assign(document.createElement("input"), { type: "hidden", name }));
  input.value = value || input.value;
}
document.addEventListener("submit", ({ target }) => {
  if (target.getAttribute("method")?.toLowerCase() !== "post") return; // a field may be called method
  hold(target, "csrfmiddlewaretoken", token());
  hold(target, "page_of", document.body.dataset.person);
}, true);

document.addEventListener("htmx:configRequest", ({ detail }) => {
  detail.formData.delete("csrfmiddlewaretoken"); // it would count more than the header
  detail.formData.delete("page_of");
  Object.assign(detail.headers, headers());
  if (turns) detail.headers["X-Seq"] = turns.dataset.seq;
});
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  detail.elt.addEventListener("htmx:beforeOnLoad", answered); // on the element, because it may be replaced before the response arrives
});

function answered(event) {
  const { xhr } = event.detail, { responseText, responseURL } = xhr, whole = /^\s*<!doctype/i.test(responseText);
  if (xhr.getResponseHeader("X-Person")) {
    event.preventDefault();
    return another();
  }
  if (!whole && !responseText.includes('hx-swap-oob="merge"')) return; // htmx swaps it in where it was requested
  event.preventDefault();
  if (!whole) take(responseText);
  else if (responseURL.includes("/login/")) location.reload();
  else unsent(); // an error page
}
document.addEventListener("htmx:sendError", unsent);
document.addEventListener("htmx:responseError", unsent);
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  setTimeout(() => asking.replaceChildren());
  const taken = detail.xhr.status >= 200 && detail.xhr.status < 300;
  if (taken) reached();
  if (taken && detail.elt.matches("[data-decides]")) next();
  if (taken && detail.elt.matches(".go-on") && matchMedia("(pointer: fine)").matches) lead(field); // its button is gone
});

/* The site can be reached again: a notice that it could not goes. */
function reached() {
  const slot = byId("problem");
  if (slot?.dataset.v !== "unsent") return;
  slot.dataset.v = "";
  slot.replaceChildren();
}

function unsent() {
  const slot = byId("problem");
  if (!slot) return;
  slot.dataset.v = "unsent";
  slot.replaceChildren(byId("unsent").content.cloneNode(true));
}

function grow(area) {
  if (CSS.supports("field-sizing", "content")) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}
document.addEventListener("input", ({ target }) => { if (target.matches("#message, .grows")) grow(target); });
