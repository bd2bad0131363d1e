"use strict";
/* Fields of files in a form: a file is uploaded as soon as it is chosen, and the form keeps all that was typed. */

{
  function size(bytes) { // the same format as on the server
    if (bytes < 1024) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
    return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
  }

  const mark = (root) => root.querySelectorAll(".file-field").forEach((each) => each.classList.add("sends"));

  function refuse(place, words) {
    const picker = place.querySelector("[type=file]"), line = place.querySelector("template").content.cloneNode(true);
    picker.value = ""; // otherwise it would be sent with the form
    picker.disabled = false;
    picker.setAttribute("aria-invalid", "true");
    place.querySelector(".file-sending").hidden = true;
    line.querySelector("span").textContent = words;
    place.querySelector(".file-errors").replaceChildren(line);
  }

  function replace(place, html) {
    const page = new DOMParser().parseFromString(html, "text/html"), fresh = page.querySelector(".file-field");
    if (!fresh) return refuse(place, "The file was not uploaded. Reload the page, and choose it again.");
    fresh.querySelector("[autofocus]")?.removeAttribute("autofocus");
    mark(page);
    place.replaceWith(fresh);
    fresh.querySelectorAll(".err").forEach((each) => each.setAttribute("role", "alert"));
    fresh.querySelector("[type=file]").focus({ preventScroll: true });
  }

  function send(place, picker) {
    const [file] = picker.files, mb = Number(place.dataset.mb), form = picker.form;
    if (!file) return;
    if (file.size > mb * 1024 ** 2) {
      refuse(place, `${file.name} is too large. A file can have up to ${mb} MB.`);
      return;
    }
    const body = new FormData(), line = place.querySelector(".file-sending"), request = new XMLHttpRequest();
    body.append("key", form.elements.key.value);
    const before = place.querySelector("input[type=hidden]");
    if (before) body.append(before.name, before.value);
    body.append("upload", place.dataset.key);
    body.append(picker.name, file);
    place.querySelector(".file-errors").replaceChildren();
    picker.disabled = true; // what is on its way is not sent with the form once more
    line.hidden = false;
    line.querySelector("[role=status]").textContent = `Uploading ${size(file.size)}…`;
    line.querySelector("[data-cancel]").onclick = () => request.abort();
    request.upload.onprogress = (event) => { line.querySelector("progress").value = (100 * event.loaded) / event.total; };
    request.onerror = () => refuse(place, "The file was not uploaded: the site cannot be reached. Choose it again.");
    request.onabort = () => refuse(place, "The upload was cancelled.");
    request.onload = () => {
      const plain = request.getResponseHeader("Content-Type")?.startsWith("text/plain"); // one sentence, from before any page
      if (plain) refuse(place, request.responseText);
      else replace(place, request.responseText);
    };
    request.open("POST", place.dataset.to);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.send(body);
  }

  mark(document);
  document.addEventListener("change", (event) => {
    const place = event.target.closest(".file-field");
    if (place && event.target.type === "file") send(place, event.target);
  });
  document.addEventListener("submit", (event) => { // the run would start without it
    const line = event.target.querySelector(".file-sending:not([hidden])");
    if (!line || event.submitter?.name === "remove") return;
    event.preventDefault();
    line.querySelector("[role=status]").textContent = "Still uploading. Start it when the file is here.";
  });
}
