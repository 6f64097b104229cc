// Values on hover and on keyboard focus. Without this script browsers show the same texts as plain hover titles.
(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  let active = null;

  const hide = () => {
    if (active) active.classList.remove("on");
    active = null;
    tip.hidden = true;
  };

  const show = (mark) => {
    if (mark === active) return;
    hide();
    active = mark;
    mark.classList.add("on");
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = mark.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, width - tip.offsetWidth - 8));
    const above = box.top - tip.offsetHeight - 10;
    tip.style.left = left + scrollX + "px";
    tip.style.top = (above > 4 ? above : box.bottom + 10) + scrollY + "px";
  };

  for (const svg of document.querySelectorAll("svg.chart[role=img]")) {
    // A title element would open a second, slower tooltip; its text moves to an attribute.
    const name = svg.querySelector(":scope > title");
    svg.setAttribute("aria-label", name.textContent);
    svg.removeAttribute("aria-labelledby");
    name.remove();
    const marks = [];
    for (const title of svg.querySelectorAll("title")) {
      const mark = title.parentNode;
      mark.dataset.tip = title.textContent;
      title.remove();
      marks.push(mark);
    }
    if (marks.length === 0) continue;
    svg.tabIndex = 0;
    let current = 0;

    const distance = (mark, x, y) => {
      const box = mark.getBoundingClientRect();
      const dx = Math.max(box.left - x, 0, x - box.right);
      const dy = Math.max(box.top - y, 0, y - box.bottom);
      return Math.hypot(dx, dy);
    };
    const follow = (event) => {
      let best = null;
      let least = 28;
      for (const mark of marks) {
        const far = distance(mark, event.clientX, event.clientY);
        // Of marks at the same distance the one drawn last lies on top.
        if (far <= least) {
          least = far;
          best = mark;
        }
      }
      if (best) {
        current = marks.indexOf(best);
        show(best);
      } else hide();
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("focus", () => {
      if (svg.matches(":focus-visible")) show(marks[current]);
    });
    svg.addEventListener("keydown", (event) => {
      const last = marks.length - 1;
      const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (next === undefined) return;
      event.preventDefault();
      current = Math.max(0, Math.min(last, next));
      show(marks[current]);
    });
  }
})();
