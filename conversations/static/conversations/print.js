"use strict";
/* The button of the print view. Without JavaScript the browser's own menu prints. */

const button = document.querySelector("[data-print]");
button.hidden = false;
button.addEventListener("click", () => window.print());
