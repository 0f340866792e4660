// Draws each chart when it comes near the screen, and the rest when the browser has nothing else to do, for printing.
// Colours are the page's own custom properties: light, dark and print need no second drawing. Nothing is evaluated:
// Vega's expressions run in its interpreter, as the content policy demands.
"use strict";
(() => {
  const looks = JSON.parse(document.getElementById("looks").textContent);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const show = (_handler, event, _item, value) => {
    tip.hidden = value === null || value === "" || value === undefined;
    if (tip.hidden) return;
    tip.replaceChildren();
    for (const [name, text] of Object.entries(value)) {
      const line = document.createElement("div");
      const key = document.createElement("span");
      key.textContent = name;
      line.append(key, ` ${text}`);
      tip.append(line);
    }
    const room = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room - tip.offsetWidth - 8))}px`;
    tip.style.top = `${event.clientY + 16 + window.scrollY}px`;
  };

  const drawn = new Set();
  const waiting = [];
  const draw = (plot) => {
    if (drawn.has(plot)) return null;
    drawn.add(plot);
    const spec = JSON.parse(document.getElementById(plot.id.replace(/^plot-/, "spec-")).textContent);
    spec.config = { ...looks, axisY: { ...looks.axisY, labelLimit: Math.round(plot.clientWidth * 0.46) } };
    spec.autosize = { type: "fit-x", contains: "padding" };
    const options = { ast: true, logLevel: 1, renderer: "svg", actions: false, defaultStyle: false, tooltip: show };
    const done = vegaEmbed(plot, spec, options).then(
      () => plot.classList.add("drawn"),
      (error) => {
        plot.textContent = `This chart could not be drawn (${error.message}); its numbers are below.`;
      },
    );
    waiting.push(done);
    return done;
  };

  const plots = [...document.querySelectorAll(".plot")];
  const near = new IntersectionObserver(
    (seen) => {
      for (const one of seen) if (one.isIntersecting) { near.unobserve(one.target); draw(one.target); }
    },
    { rootMargin: "400px" },
  );
  plots.forEach((plot) => near.observe(plot));

  const idle = window.requestIdleCallback || ((then) => setTimeout(then, 200));
  const rest = () => {
    const next = plots.find((plot) => !drawn.has(plot));
    if (next) Promise.resolve(draw(next)).then(() => idle(rest));
    else Promise.all(waiting).then(() => { document.documentElement.dataset.charts = "drawn"; });
  };
  window.addEventListener("load", () => idle(rest));
  window.addEventListener("beforeprint", () => plots.forEach(draw));
  window.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
})();
