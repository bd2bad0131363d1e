// Measures whether a page is whole at its present width, and returns what is not, in words.
() => {
  const faults = [], wide = document.documentElement.clientWidth;
  const told = (one) => {
    const words = JSON.stringify((one.textContent || "").trim().slice(0, 30));
    return `<${one.tagName.toLowerCase()} class="${one.className}"> in "${one.parentElement?.className}": ${words}`;
  };
  const style = new Map();
  const of = (one) => style.get(one) || (style.set(one, getComputedStyle(one)), style.get(one));
  const scrolls = (one) => /auto|scroll/.test(of(one).overflowX);
  // A box of its own, in which wide contents scroll: code, tables, fields, rows of links.
  const OWN = "pre, textarea, input, select, .table-wrap, .lines, .jumps, .tail, #changelist-form, .overflow-x-auto";
  const hidden = (one) => { // for screen readers only, or not shown at all
    for (let each = one; each; each = each.parentElement) {
      const looks = of(each);
      if (looks.display === "none" || looks.visibility === "hidden" || looks.opacity === "0") return true;
      if (looks.clipPath === "inset(50%)" || /simplebar/.test(each.className)) return true;
    }
    return false;
  };
  const inOwn = (one) => {
    for (let each = one.parentElement; each; each = each.parentElement) if (scrolls(each) && each.matches(OWN)) return true;
    return false;
  };
  const cut = (one) => { // says so itself, by an ellipsis
    for (let each = one; each; each = each.parentElement) {
      const looks = of(each);
      if (looks.textOverflow === "ellipsis" && looks.overflowX !== "visible") return true;
      if (looks.webkitLineClamp !== "none" && looks.webkitLineClamp) return true;
    }
    return false;
  };
  const page = document.documentElement.scrollWidth;
  if (page > wide) faults.push(`the page scrolls sideways: ${page} of ${wide}`);
  const drawn = (one) => one.getClientRects().length && !(one instanceof SVGElement) && !hidden(one);
  const shown = [...document.body.querySelectorAll("*")].filter(drawn);
  for (const one of shown) {
    const box = one.getBoundingClientRect();
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth && of(one).display !== "inline" && !one.matches(OWN)) {
      const sizes = `${one.scrollWidth} of ${one.clientWidth}`;
      if (scrolls(one)) faults.push(`scrolls sideways: ${told(one)} ${sizes}`);
      if (/hidden|clip/.test(of(one).overflowX) && !cut(one)) faults.push(`cut off at its side: ${told(one)} ${sizes}`);
    }
    if ((box.right > wide + 1 || box.left < -1) && !inOwn(one) && !cut(one.parentElement))
      faults.push(`out of the window: ${told(one)} from ${Math.round(box.left)} to ${Math.round(box.right)}`);
    if (/flex|grid/.test(of(one).display) && !cut(one)) {
      const parts = [...one.children].filter((each) => drawn(each) && /static|relative/.test(of(each).position));
      for (let n = 1; n < parts.length; n++) {
        const a = parts[n - 1].getBoundingClientRect(), b = parts[n].getBoundingClientRect();
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 2) faults.push(`two overlap: ${told(parts[n - 1])} and ${told(parts[n])}`);
      }
    }
  }
  for (const axis of document.querySelectorAll(".plot .x")) {
    const labels = [...axis.querySelectorAll("text")].map((one) => one.getBoundingClientRect()).filter((box) => box.width);
    for (let n = 1; n < labels.length; n++)
      if (labels[n].left < labels[n - 1].right) faults.push(`labels of an axis overlap at ${Math.round(labels[n].left)}`);
  }
  const BUTTONS = ".acts .btn, .acts-form .btn, .acts .choice, .replies .btn, .decide .btn, .sheet .btn, .form .btn";
  for (const one of shown.filter((each) => each.matches(BUTTONS) && !each.disabled)) {
    one.scrollIntoView({ block: "center", inline: "nearest" });
    const box = one.getBoundingClientRect();
    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const behindAMenu = at?.closest(".menu-box"); // which is open only to be looked at itself
    if (!behindAMenu && !one.contains(at)) faults.push(`cannot be clicked: ${told(one)} under ${at ? told(at) : "nothing"}`);
    if (one.scrollWidth > one.clientWidth + 2) faults.push(`the words of a button are wider than it: ${told(one)}`);
  }
  return [...new Set(faults)].slice(0, 12);
}
