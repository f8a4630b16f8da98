// Curves that look alike are one path, with both axes from 0 to 1, which Vega stretches over its
// scales: a thousand curves are a few marks then, not one for each of their points.
function unit({ log, domain: [from, to] }) {
  const scale = log ? Math.log : Number;
  return (value) => (scale(value) - scale(from)) / (scale(to) - scale(from));
}

// What the curves are of: the figure that arms are compared by, or one that was told beside it.
const measures = () => [{ name: told.metric.name, axis: told.axes.loss, of: (arm) => arm.losses },
  ...told.measures.map(({ name, axis }, place) => ({ name, axis, of: (arm) => arm.series[place] ?? [] }))
    .filter(({ axis }) => axis !== null)];

function curveOf(arm) {
  const x = unit(told.axes.level), y = unit(measure.axis), figures = measure.of(arm), points = [];
  arm.levels.forEach((level, place) => {
    if ((figures[place] ?? null) !== null) points.push([x(level), y(figures[place])]);
  });
  return points;
}

const pathOf = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(5)} ${y.toFixed(5)}`).join("");

function curvesChart() {
  const { level } = told.axes, { name, axis: loss } = measure;
  const curves = told.arms.map((arm) => ({ arm, points: curveOf(arm) })).filter(({ points }) => points.length);
  const groups = new Map();
  for (const { arm, points } of curves) {
    const look = (0.12 + 0.6 * arm.far ** 2).toFixed(1);
    groups.set(look, [...(groups.get(look) ?? []), pathOf(points)]);
  }
  const lines = [...groups].map(([look, paths]) =>  // where there are many, each is fainter
    ({ path: paths.join(""), faint: look * Math.min(1, (60 / paths.length) ** 0.7) }));
  const ends = curves.map(({ arm }) => {
    const figures = measure.of(arm), last = figures.findLastIndex((value) => (value ?? null) !== null);
    return { arm: arm.arm, pulls: arm.levels[last], loss: figures[last], faint: 0.25 + 0.6 * arm.far ** 2,
      out: arm.fate === "failed" || arm.fate === "diverged" };
  }).reverse();  // the best are drawn last
  const along = unit(level), { came } = told.narrowing;
  const named = came.length > 14 ? [] : came.filter(([pulls], place) =>  // where a number has room
    !place || along(pulls) - along(came[place - 1][0]) > 0.05);
  const marked = named.map(([pulls, arms], place) =>
    ({ pulls, arms: place ? number(arms) : `${number(arms)} arms` }));

  const path = (mark, data, look) => ({
    type: "path", name: mark, from: { data }, clip: true, interactive: false,
    encode: { update: {
      path: { field: "path" },
      x: { signal: `scale('x', ${level.domain[0]})` }, y: { signal: `scale('y', ${loss.domain[0]})` },
      scaleX: { signal: `scale('x', ${level.domain[1]}) - scale('x', ${level.domain[0]})` },
      scaleY: { signal: `scale('y', ${loss.domain[1]}) - scale('y', ${loss.domain[0]})` },
      ...look,
    } },
  });
  const addCurves = (vega) => {
    vega.data.push({ name: "lines", values: lines }, { name: "chosen", values: chosenCurves() });
    vega.marks.splice(vega.marks.findIndex((mark) => mark.type === "symbol"), 0,
      path("all-curves", "lines", { stroke: { value: "var(--ink)" }, strokeWidth: { value: 1 },
        strokeOpacity: { field: "faint" } }),
      path("chosen-curves", "chosen", { strokeWidth: { value: 2.5 }, stroke: { field: "colour" } }));
    return vega;
  };
  const colour = { condition: { test: `datum.arm === ${won} && !(${isPicked})`, value: "var(--accent)" }, value: "var(--ink)" };
  const isChosen = `${isPicked} || datum.arm === ${won}`;
  return draw("curves-chart", `Learning curves of ${curves.length} arms: ${name} against pulls`, {
    height: Math.min(460, Math.max(280, window.innerWidth * 0.6)),
    encoding: {
      x: { field: "pulls", type: "quantitative", scale: scaled(level), axis: { ...levelTicks(), grid: false }, title: "pulls" },
      y: { field: "loss", type: "quantitative", scale: scaled(loss), axis: ticks(loss), title: name },
    },
    layer: [
      { data: { values: marked }, mark: { type: "rule", color: "var(--line)" }, encoding: { y: null } },
      { data: { values: marked }, mark: { type: "text", dy: -6, baseline: "bottom", clip: false },
        encoding: { y: { value: 0 }, text: { field: "arms" } } },
      { data: { values: ends }, params: zoomable(["x", "y"]), mark: { type: "point", filled: true, clip: true },
        encoding: {
          shape: { condition: { test: "datum.out", value: "M-1-1L1 1M1-1L-1 1" }, value: "circle" }, color: colour,
          opacity: { condition: { test: isChosen, value: 1 }, field: "faint", type: "quantitative", scale: null },
          size: { condition: { test: isChosen, value: 70 }, value: ends.length > 200 ? 8 : 22 },
        } },
    ],
  }, addCurves).then(() => { pointedAt = curves; });
}

// The curves that stand out: those of the best, the winner's, and that of the picked arm.
let highlighted = 0;  // how many of the best
const chosenCurves = () => [...told.arms.slice(0, highlighted).map(({ arm }) => [arm, "var(--close)"]).reverse(),
  [won, "var(--accent)"], [picked, "var(--ink)"]].filter(([arm]) => armsByNumber.has(arm))
  .map(([arm, colour]) => ({ colour, path: pathOf(curveOf(armsByNumber.get(arm))) }));

// Pointing anywhere near a curve is pointing at it.
let pointedAt = [];
function pickNearest() {
  const element = document.getElementById("curves-chart");
  const nearest = (event) => {
    if (!views.has(element)) return null;
    const { view } = views.get(element);
    const { left, top } = element.querySelector("svg").getBoundingClientRect();
    const [dx, dy] = view.origin(), x = view.scale("x"), y = view.scale("y");
    const [x0, x1] = told.axes.level.domain.map(x), [y0, y1] = measure.axis.domain.map(y);
    const here = [event.clientX - left - dx, event.clientY - top - dy];
    let best = null, least = 14;
    for (const { arm, points } of pointedAt) {
      for (let place = 0; place < points.length; place += 1) {
        const [from, to] = [points[Math.max(0, place - 1)], points[place]]
          .map(([u, v]) => [x0 + u * (x1 - x0), y0 + v * (y1 - y0)]);
        const distance = distanceTo(here, from, to);
        if (distance < least) [best, least] = [arm, distance];
      }
    }
    return best;
  };
  element.addEventListener("pointermove", (event) => {
    const arm = event.buttons ? null : nearest(event);
    element.style.cursor = arm ? "pointer" : "";
    showTip(event, arm && armTip(arm));
  });
  element.addEventListener("pointerleave", (event) => showTip(event, null));
  element.addEventListener("click", (event) => {
    const arm = nearest(event);
    if (arm) pickArm(arm.arm);
  });
}

function distanceTo([x, y], [x0, y0], [x1, y1]) {
  const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
  const part = length ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x - x0 - part * dx, y - y0 - part * dy);
}
