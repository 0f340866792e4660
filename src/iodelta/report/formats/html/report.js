// Draws every chart before the page is loaded: what is captured, printed or read aloud then is whole, wherever it is
// scrolled.
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

  // As many columns as fit, and no name longer than all of it: in one row the end of a legend would be cut off.
  const foldLegends = (part, width) => {
    if (part === null || typeof part !== "object") return;
    const names = part.legend?.values;
    if (names?.length) {
      const longest = Math.max(...names.map((name) => name.length));
      part.legend.columns = Math.max(1, Math.floor(width / (6.4 * longest + 42)));
      part.legend.labelLimit = Math.min(240, width - 42);
    }
    for (const [key, value] of Object.entries(part)) {
      if (key !== "data" && key !== "datasets") foldLegends(value, width);
    }
  };

  // The field that names the rows of a chart: that of its first y channel of names.
  const rowField = (part) => {
    if (part === null || typeof part !== "object") return undefined;
    if (part.y?.type === "nominal") return part.y.field;
    const inside = Object.entries(part).filter(([key]) => key !== "data" && key !== "datasets");
    return inside.map(([, value]) => rowField(value)).find((field) => field);
  };

  // The names of the rows of a chart; none where its y axis has numbers.
  const rowNames = (spec) => {
    const field = rowField(spec);
    return field ? [...new Set(spec.datasets.rows.map((row) => String(row[field] ?? "")))] : [];
  };

  // A long name loses its beginning, or its middle: the shorter cut that leaves all names different.
  const cutOf = (names, width) => {
    const cut = (name, most, head) => (
      name.length > most ? `${name.slice(0, head)}…${name.slice(1 - most + head)}` : name);
    const different = (most, head) => new Set(names.map((name) => cut(name, most, head))).size === names.length;
    for (let most = Math.max(8, Math.floor((width * 0.46) / 6.4)); ; most += 1) {
      const head = [0, Math.floor(most / 2)].find((letters) => different(most, letters));
      if (head !== undefined) return { most, head };
    }
  };

  // What the names of rows, or the numbers of an axis, take from the width of a chart.
  const nameWidth = (names, most) => Math.max(60, 6.2 * Math.min(most, Math.max(0, ...names.map((name) => name.length))) + 10);

  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const families = new Map();

  // A copy of part in which every string "@name" is replaced; in a list, a name that stands for a list gives its
  // members. What is put in is data, never looked into again.
  const fill = (part, texts) => {
    if (typeof part === "string") return part.startsWith("@") ? texts[part.slice(1)] : part;
    if (part === null || typeof part !== "object") return part;
    if (!Array.isArray(part)) {
      return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, fill(value, texts)]));
    }
    return part.flatMap((value) => {
      const put = fill(value, texts);
      return typeof value === "string" && Array.isArray(put) ? put : [put];
    });
  };

  // Rows as objects; most come with their names written once.
  const rowsOf = (data) => (Array.isArray(data)
    ? data
    : data.rows.map((row) => Object.fromEntries(data.names.map((name, at) => [name, row[at]]))));

  // The specification of the chart's family, filled with the chart's own words and data.
  const specOf = (id) => {
    const own = read(id);
    if (!families.has(own.family)) families.set(own.family, read(`family-${own.family}`));
    const spec = fill(families.get(own.family), own.texts);
    const data = Object.entries(own.data).map(([name, rows]) => [name, rowsOf(rows)]);
    return { ...spec, datasets: { ...spec.datasets, ...Object.fromEntries(data) } };
  };

  const draw = (plot) => {
    const spec = specOf(plot.id.replace(/^plot-/, "spec-"));
    const names = rowNames(spec);
    const { most, head } = cutOf(names, plot.clientWidth);
    const shortened = `slice(datum.label, 0, ${head}) + '…' + slice(datum.label, ${1 - most + head})`;
    const labelExpr = `length(datum.label) > ${most} ? ${shortened} : datum.label`;
    const axisY = { ...looks.axisY, labelLimit: Math.round(Math.max(plot.clientWidth * 0.48, 6.8 * most)) };
    // In the middle of a narrow plot a long title would run off its right edge.
    const axisX = plot.clientWidth < 480 ? { ...looks.axisX, titleAnchor: "end" } : looks.axisX;
    spec.config = { ...looks, axisX, axisY, axisYDiscrete: { ...looks.axisYDiscrete, labelExpr } };
    foldLegends(spec, plot.clientWidth * 0.96 - nameWidth(names, most));
    spec.autosize = { type: "fit-x", contains: "padding" };
    const options = { ast: true, logLevel: 1, renderer: "svg", actions: false, defaultStyle: false, tooltip: show };
    return vegaEmbed(plot, spec, options).then(
      () => {
        plot.classList.add("drawn");
        // The plot around it has the name; what it is made of would be read as dozens of graphics without one.
        plot.querySelector("svg").setAttribute("aria-hidden", "true");
      },
      (error) => {
        plot.textContent = `This chart could not be drawn (${error.message}); its numbers are below.`;
      },
    );
  };

  // What stands open first; what is folded away then, in pieces, so that the page can be read meanwhile.
  const plots = [...document.querySelectorAll(".plot")];
  const folded = plots.filter((plot) => plot.closest("details.more"));
  const rest = async () => {
    for (const plot of folded) {
      await draw(plot);
      await new Promise((done) => { setTimeout(done); });
    }
    document.documentElement.dataset.charts = "drawn";
  };
  Promise.all(plots.filter((plot) => !folded.includes(plot)).map(draw)).then(rest);
  // For browsers whose styles cannot open what is folded: on paper all is shown.
  const more = [...document.querySelectorAll("details.more")];
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = more.filter((one) => !one.open);
    opened.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => { opened.forEach((one) => { one.open = false; }); });
  window.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
})();
