// Draws the courses of a series: nights with intervals, steps as ranges, levels, epochs and notes. Every number is the
// server's. Colours are the page's own custom properties, read again when the scheme changes.
"use strict";
(() => {
  const courses = JSON.parse(document.getElementById("courses").textContent);
  const status = document.getElementById("said");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const two = (number) => String(number).padStart(2, "0");
  const day = (seconds) => {
    const at = new Date(1000 * seconds);
    return `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
  };
  const clock = (seconds) => {
    const at = new Date(1000 * seconds);
    return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
  };

  const said = (points, at) => `${points.night[at]}, ${points.build[at]}: ${points.said[at]}`;

  // What lies behind and around the points.
  const behind = (plot, course) => {
    const { ctx, bbox } = plot;
    const x = (moment) => plot.valToPos(moment / 1000, "x", true);
    const y = (value) => plot.valToPos(value, "y", true);
    const upright = (moment, dash) => {
      ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
      ctx.beginPath();
      ctx.moveTo(x(moment), bbox.top);
      ctx.lineTo(x(moment), bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
    };
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = color("variants-1");
    ctx.globalAlpha = 0.16;
    for (const step of course.steps) {
      ctx.fillRect(x(step.t), bbox.top, Math.max(2, x(step.t2) - x(step.t)), bbox.height);
    }
    ctx.globalAlpha = 1;
    ctx.lineWidth = devicePixelRatio;
    ctx.strokeStyle = color("soft");
    for (const epoch of course.epochs) upright(epoch.t, [2, 3]);
    ctx.fillStyle = color("ink");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    for (const note of course.notes) {
      upright(note.t, [8, 3]);
      ctx.fillText(note.number, x(note.t) + 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
    }
    ctx.strokeStyle = color("ink");
    ctx.globalAlpha = 0.45;
    ctx.beginPath();
    const { t, low, high } = course.points;
    for (let at = 0; at < t.length; at += 1) {
      const across = x(t[at]);
      ctx.moveTo(across, y(low[at]));
      ctx.lineTo(across, y(high[at]));
    }
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    for (const flat of course.flats) {
      ctx.moveTo(x(flat.t), y(flat.value));
      ctx.lineTo(x(flat.t2), y(flat.value));
    }
    ctx.stroke();
    ctx.restore();
  };

  const show = (plot, course, at) => {
    tip.hidden = at === null || at === undefined;
    if (tip.hidden) return;
    tip.textContent = said(course.points, at);
    const box = plot.over.getBoundingClientRect();
    const left = box.left + plot.valToPos(course.points.t[at] / 1000, "x") + 14;
    tip.style.left = `${Math.max(4, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${box.top + plot.valToPos(course.points.value[at], "y") + window.scrollY + 14}px`;
  };

  // The row of a night in the table; one that is not on this page is on the page with all.
  const open = (course, at) => {
    const row = document.getElementById(`night-${course.points.experiment[at]}`);
    if (row === null) {
      location.assign(`?nights=all#night-${encodeURIComponent(course.points.experiment[at])}`);
      return;
    }
    document.querySelectorAll("tr.chosen").forEach((one) => one.classList.remove("chosen"));
    row.classList.add("chosen");
    row.scrollIntoView({ block: "center" });
    (row.querySelector("a") ?? row.querySelector("input")).focus({ preventScroll: true });
  };

  const draw = (place) => {
    const course = courses[Number(place.dataset.figure)];
    const { points } = course;
    if (!points.t.length) return;
    const began = performance.now();
    const axis = { stroke: () => color("soft"), font: "11px system-ui, sans-serif", ticks: { stroke: () => color("hair"), width: 1 } };
    const lowest = points.low.reduce((one, other) => Math.min(one, other), Infinity);
    const highest = points.high.reduce((one, other) => Math.max(one, other), -Infinity);
    const room = (highest - lowest || Math.abs(highest) || 1) * 0.06;
    const seconds = points.t.map((one) => one / 1000);
    // uPlot takes years around a single night.
    const around = ([from, to]) => (seconds.length > 1 ? [from - 0.01 * (to - from), to + 0.01 * (to - from)] : [seconds[0] - 86400, seconds[0] + 86400]);
    const options = {
      width: place.clientWidth,
      height: 280,
      legend: { show: false },
      cursor: { points: { size: 9 }, drag: { x: true, y: false } },
      scales: { x: { time: true, range: (_, ...shown) => around(shown) }, y: { range: () => [lowest - room, highest + room] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 76,
          values: (_, splits, __, ___, step) => splits.map((one) => (step < 86400 && one % 86400 ? clock(one) : day(one))),
        },
        {
          ...axis,
          grid: { stroke: () => color("hair"), width: 1 },
          label: course.y,
          labelFont: "11px system-ui, sans-serif",
          labelSize: 18,
          // The widest label decides: uPlot would cut it off. Seven characters at least keep two charts aligned.
          size: (_, values) => 14 + 6.6 * Math.max(7, ...(values ?? []).map((one) => one.length)),
        },
      ],
      tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), "Etc/UTC"),
      series: [
        {},
        { label: course.y, stroke: () => color("ink"), fill: () => color("ink"), paths: () => null, points: { show: true, size: points.t.length > 1500 ? 3 : 5, fill: () => color("ink") } },
      ],
      hooks: {
        drawAxes: [(plot) => behind(plot, course)],
        draw: [() => { place.dataset.drawn ??= String(Math.round(10 * (performance.now() - began)) / 10); }],
        setCursor: [(plot) => show(plot, course, plot.cursor.left >= 0 ? plot.cursor.idx : null)],
      },
    };
    const plot = new uPlot(options, [seconds, points.value], place);
    plot.over.addEventListener("click", () => { if (plot.cursor.idx !== null) open(course, plot.cursor.idx); });
    plot.over.addEventListener("mouseleave", () => { tip.hidden = true; });
    keys(place, plot, course);
    new ResizeObserver(() => {
      if (place.clientWidth && place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: 280 });
    }).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw());
  };

  const keys = (place, plot, course) => {
    let at = course.points.t.length;
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    place.addEventListener("keydown", (event) => {
      const last = course.points.t.length - 1;
      if (event.key === "Escape") tip.hidden = true;
      if (event.key === "Enter" && at <= last) {
        event.preventDefault(); // else the form that takes the focus would be sent
        open(course, at);
      }
      if (!(event.key in steps)) return;
      event.preventDefault();
      at = Math.max(0, Math.min(last, at + steps[event.key]));
      plot.setCursor({ left: plot.valToPos(course.points.t[at] / 1000, "x"), top: plot.valToPos(course.points.value[at], "y") }, false);
      show(plot, course, at);
      status.textContent = said(course.points, at);
    });
    place.addEventListener("blur", () => { tip.hidden = true; });
  };

  document.querySelectorAll(".course").forEach(draw);
  document.documentElement.dataset.courses = "drawn";
})();
