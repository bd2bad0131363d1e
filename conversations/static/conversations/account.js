// The account page: copying a new key, and turning browser notifications on and off (notify.js shows them).
"use strict";

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl-C"; // without https a page may not write to the clipboard; the key is selected
    }
  });
}

const notifying = document.getElementById("notify");
if (notifying) {
  const [button, said] = notifying.children;
  const on = () => "Notification" in window && Notification.permission === "granted" && localStorage.notices !== "off";
  const show = () => {
    const able = "Notification" in window && Notification.permission !== "denied";
    button.hidden = !able;
    button.textContent = on() ? "Turn off" : "Turn on";
    if (!("Notification" in window)) said.textContent = "This browser does not support notifications.";
    else if (!able) said.textContent = "Notifications are blocked: allow them for this site in your browser's settings.";
    else said.textContent = `Notifications in this browser are ${on() ? "on" : "off"}.`;
  };
  button.addEventListener("click", async () => {
    if (on()) localStorage.notices = "off";
    else if ((await Notification.requestPermission()) === "granted") delete localStorage.notices;
    show();
  });
  notifying.hidden = false;
  show();
}
