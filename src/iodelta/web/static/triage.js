// Alerts by keyboard: j and k move, o opens, the key on a button presses it. Nothing happens while somebody types.
"use strict";
(() => {
  const alerts = [...document.querySelectorAll(".alert")];
  const current = () => alerts.findIndex((one) => one.contains(document.activeElement));
  const go = (at) => {
    const one = alerts[Math.max(0, Math.min(alerts.length - 1, at))];
    one?.focus();
    one?.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=radio]), textarea, select");
    if (event.key === "Escape" && typing) go(current());
    if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = current();
    if (event.key === "j") go(at + 1);
    else if (event.key === "k") go(at - 1);
    else if (at >= 0 && event.key === "o") alerts[at].querySelector("a").click();
    else if (at >= 0) alerts[at].querySelector(`button[data-key="${CSS.escape(event.key)}"]`)?.click();
  });
})();
