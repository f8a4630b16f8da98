// All charts but the learning curves.

// Bars, one a rung; where there are too many rungs, areas over the pulls of an arm.
function rungCharts() {
  const rungs = told.narrowing.rungs.map((rung, row) => ({ ...rung, row }));
  const name = (rung) => `${rung.name}: ${number(rung.level)} pulls each`;
  const counted = (rung) => `${number(rung.arms)} arms` +
    (rung.already ? ` (${number(rung.already)} were that far already)` : "");
  const time = rungs.some((rung) => rung.train_seconds + rung.loss_seconds > 0);
  document.getElementById("rungs-time").hidden = !time;
  const parts = (fields) => rungs.flatMap((rung) => fields(rung).map((part, order) => ({ ...part, order,
    row: rung.row, label: rung.label, level: rung.level, tip: `${name(rung)}\n${part.tip}` })));
  const charts = [
    ["rungs-arms", "arms at each rung", parts((rung) => [
      { value: rung.on, look: "on", tip: `${counted(rung)}, of which ${number(rung.on)} went on` },
      { value: Math.max(0, rung.arms - rung.on), look: "rest",
        tip: `${counted(rung)}, of which ${number(rung.arms - rung.on)} did not go on` }])],
    ["rungs-pulls", "pulls at each rung", parts((rung) => [
      { value: rung.pulls, look: "on", tip: `${number(rung.pulls)} pulls` }])],
  ];
  if (time) charts.push(["rungs-seconds", "seconds at each rung", parts((rung) => [
    { value: rung.train_seconds, look: "on", tip: `${number(rung.train_seconds)} s training` },
    { value: rung.loss_seconds, look: "look", tip: `${number(rung.loss_seconds)} s looking` }])]);

  const colour = { field: "look", type: "nominal",
    scale: { domain: ["on", "rest", "look"], range: ["var(--bar)", "var(--faint)", "var(--deep)"] } };
  const bars = rungs.length <= 40 && told.narrowing.compared;
  const labels = named(rungs.map((rung) => rung.label));
  return charts.map(([id, what, values]) => draw(id, `Chart of ${what}`, bars ? {
    data: { values }, params: labels, height: rows(rungs.length, 16),
    mark: { type: "bar", height: { band: 0.72 } },
    encoding: {
      y: { field: "row", type: "ordinal", title: null,
        axis: { labelExpr, ticks: false, domain: false, labelOverlap: rungs.length > 16 } },
      x: { field: "value", type: "quantitative", stack: "zero", title: null, axis: { tickCount: 4, domain: false } },
      color: colour, order: { field: "order" }, tooltip: { field: "tip", type: "nominal" },
    },
  } : {
    data: { values }, height: 180, mark: { type: "bar", width: 2 },
    encoding: {
      x: { field: "level", type: "quantitative", scale: scaled(told.axes.level), axis: levelTicks(), title: "pulls of an arm" },
      y: { field: "value", type: "quantitative", stack: "zero", title: null, axis: { tickCount: 4 } },
      color: colour, order: { field: "order" }, tooltip: { field: "tip", type: "nominal" },
    },
  }));
}

function importanceChart() {
  const percent = (share) => `${Math.round(100 * share)} %`;
  const values = told.parameters.slice(0, 12).map(({ name, importance }, row) => ({ row, share: importance,
    said: percent(importance), tip: `${name}: ${percent(importance)}` }));
  const names = told.parameters.slice(0, 12).map((parameter) => parameter.name);
  return draw("importance-chart", "How much each setting explains, as a share", {
    data: { values }, params: named(names), height: rows(values.length, 99),
    encoding: {
      y: { field: "row", type: "ordinal", title: null,
        axis: { labelExpr, labelLimit: 140, ticks: false, domain: false, labelOverlap: false } },
      x: { field: "share", type: "quantitative", scale: { domain: [0, 1] }, axis: null },
      tooltip: { field: "tip", type: "nominal" },
    },
    layer: [
      { mark: { type: "bar", height: { band: 0.6 } } },
      { mark: { type: "text", align: "left", dx: 6 }, encoding: { text: { field: "said" } } },
    ],
  });
}

// A point an arm: its value of one setting, and its latest loss. Options are spread a little.
function settingChart(element, parameter, place) {
  const options = parameter.kind === "option" ? parameter.options : null;
  const spread = (arm) => ((arm * 0.618034) % 1 - 0.5) * 0.5;
  const values = told.arms.filter((arm) => arm.values[place] !== null && arm.loss !== null)
    .map((arm, _, { length }) => ({ arm: arm.arm, loss: arm.loss,
      faint: (0.15 + 0.75 * arm.far ** 2) * Math.min(1, (200 / length) ** 0.5), tip: armTip(arm),
      value: options ? options.indexOf(arm.values[place]) + spread(arm.arm) : arm.values[place] }));
  const axis = options
    ? { values: options.map((_, index) => index), labelExpr, labelLimit: 90, grid: false, ticks: false, labelAngle: options.length > 4 ? -30 : 0, labelOverlap: options.length > 10 }
    : { ...ticks({ log: parameter.kind === "log" }, 4), grid: false };
  const scale = options ? { domain: [-0.5, options.length - 0.5], nice: false }
    : { nice: false, padding: 8, ...(parameter.kind === "log" ? { type: "log" } : { zero: false }) };
  const colour = { condition: [{ test: isPicked, value: "var(--ink)" },
    { test: `datum.arm === ${won}`, value: "var(--accent)" }], value: "var(--ink)" };
  return draw(element, `${told.metric.name} against ${parameter.name}, one point for each arm`, {
    data: { values }, height: 170,
    params: [...named(options ?? []), ...zoomable(options ? ["y"] : ["x", "y"])],
    mark: { type: "point", filled: true, clip: true, cursor: "pointer" },
    encoding: {
      x: { field: "value", type: "quantitative", scale, axis, title: null },
      y: { field: "loss", type: "quantitative", scale: scaled(told.axes.loss), axis: ticks(told.axes.loss, 4), title: null },
      color: colour, tooltip: { field: "tip", type: "nominal" },
      opacity: { condition: { test: `${isPicked} || datum.arm === ${won}`, value: 1 }, field: "faint",
        type: "quantitative", scale: null },
      size: { condition: { test: `${isPicked} || datum.arm === ${won}`, value: 80 }, value: 26 },
    },
  });
}

// A line an arm, over axes that stand side by side. The last of them is the figure of arms.
function parallelChart() {
  const drawn = told.parameters.map((parameter, place) => ({ ...parameter, place }))
    .filter(({ kind, place }) => kind !== "text" && told.arms.some((arm) => arm.values[place] !== null)).slice(0, 12);
  const figures = told.arms.map((arm) => arm.loss).filter((loss) => loss !== null);
  const axes = [...drawn.map(({ name, kind, options, place }) => {
    const numbers = told.arms.map((arm) => arm.values[place]).filter((value) => typeof value === "number");
    const scale = kind === "option" ? null : { log: kind === "log", domain: [Math.min(...numbers), Math.max(...numbers)] };
    return { name, options, scale, of: (arm) => arm.values[place] };
  }), { name: told.metric.name, scale: { log: told.axes.loss.log,
    domain: [Math.min(...figures), Math.max(...figures.filter((one) => one <= told.axes.loss.domain[1]))] },
    of: (arm) => arm.loss }];
  for (const one of axes) {
    const flat = one.scale && one.scale.domain[0] === one.scale.domain[1];
    const along = flat ? () => 0.5 : one.scale ? unit(one.scale) : (value) => one.options.length < 2 ? 0.5
      : one.options.indexOf(value) / (one.options.length - 1);
    one.at = (arm) => one.of(arm) === null ? null : Math.min(1, along(one.of(arm)));
    one.marks = !one.scale ? one.options.map((option, place) => [place / Math.max(1, one.options.length - 1), option])
      : one.scale.domain.map((value, end) => [flat ? 0.5 : end, number(Number(value.toPrecision(3)))]).slice(flat ? 1 : 0);
  }
  const values = told.arms.filter((arm) => arm.loss !== null).reverse().flatMap((arm) => axes.map((one, place) => ({
    arm: arm.arm, place, at: one.at(arm), tip: armTip(arm),
    faint: (0.08 + 0.5 * arm.far ** 2) * Math.min(1, (120 / told.arms.length) ** 0.5) })));
  const marks = axes.flatMap((one, place) => (one.marks.length > 12 ? [] : one.marks).map(([at, said]) =>
    ({ place, at, said: String(said ?? "").slice(0, 14) })));
  const stands = isPicked, chosen = `${isPicked} || datum.arm === ${won}`;
  const place = { field: "place", type: "quantitative", title: null, scale: { domain: [0, axes.length - 1], nice: false, padding: 40 } };
  const at = { field: "at", type: "quantitative", axis: null, scale: { domain: [0, 1], nice: false, padding: 10 } };
  const element = document.getElementById("parallel-chart");
  element.style.minWidth = `${axes.length * 92}px`;
  return draw(element, `Settings of ${told.arms.length} arms, one line for each`, {
    height: 260, params: named(axes.map((one) => one.name)),
    encoding: { x: { ...place, axis: { orient: "top", values: axes.map((_, index) => index), labelExpr, labelLimit: 110,
      grid: true, ticks: false, domain: false, labelOverlap: false } }, y: at },
    layer: [
      { data: { values }, mark: { type: "line", cursor: "pointer" },
        encoding: {
          detail: { field: "arm" }, tooltip: { field: "tip", type: "nominal" },
          color: { condition: [{ test: stands, value: "var(--ink)" },
            { test: `datum.arm === ${won}`, value: "var(--accent)" }], value: "var(--ink)" },
          opacity: { condition: { test: chosen, value: 1 }, field: "faint", type: "quantitative", scale: null },
          size: { condition: { test: chosen, value: 2.5 }, value: 1 },
        } },
      { data: { values: values.filter(({ arm }) => arm === won) }, mark: { type: "line", color: "var(--accent)" },
        encoding: { size: { value: 2.5 } } },
      ...[{ stroke: "var(--paper)", strokeWidth: 4 }, {}].map((around) => (
        { data: { values: marks }, mark: { type: "text", align: "left", dx: 5, fontSize: 12, ...around },
          encoding: { text: { field: "said" } } })),
    ],
  });
}

// What the model expected of each arm that it chose, and what came of it; faintly, of those that came less far.
function choosingChart() {
  const { points, level, axis: scale } = told.choosing;
  const tip = (one) => [`arm ${one.arm}, ${one.how}`,
    ...(one.mean === undefined ? [] : [`expected ${number(one.mean)} ± ${number(Number((one.high - one.mean).toPrecision(2)))}`]),
    ...(one.loss === undefined ? [] : [`came to ${number(one.loss)}`]),
    ...(one.last === undefined ? [] : [`${number(one.last)} after ${number(one.at)} pulls`])].join("\n");
  const values = points.map((one) => ({ ...one, tip: tip(one) }));
  const y = (field) => ({ field, type: "quantitative", scale: scaled(scale), axis: ticks(scale, 5),
    title: `${told.metric.name} after ${number(level)} pulls` });
  const came = values.filter(({ loss }) => loss !== undefined);
  const look = { tooltip: { field: "tip", type: "nominal" } };
  return draw("choosing-chart", "What the model expected of arms, and what came", {
    height: 280,
    encoding: { x: { field: "order", type: "quantitative", title: "arms in the order in which they began",
      scale: { domain: [0, points.length + 1], nice: false }, axis: { tickCount: 8, grid: false, format: ",d" } } },
    layer: [
      { data: { values: values.filter(({ mean }) => mean !== undefined) }, params: zoomable(["x", "y"]),
        mark: { type: "rule", color: "var(--bar)", clip: true, cursor: "pointer" },
        encoding: { y: y("low"), y2: { field: "high" }, opacity: { condition: { test: isPicked, value: 1 }, value: 0.7 },
          size: { condition: { test: isPicked, value: 4 }, value: 2 }, ...look } },
      { data: { values: values.filter(({ last }) => last !== undefined) },
        mark: { type: "point", clip: true, cursor: "pointer", filled: true, color: "var(--soft)" },
        encoding: { y: y("last"), ...look, opacity: { condition: { test: isPicked, value: 1 }, value: 0.4 },
          size: { condition: { test: isPicked, value: 60 }, value: 12 } } },
      { data: { values: came }, mark: { type: "point", clip: true, cursor: "pointer", filled: false, strokeWidth: 1.5 },
        encoding: { y: y("loss"), ...look,
          stroke: { condition: { test: `datum.arm === ${won}`, value: "var(--accent)" },
            field: "how", type: "nominal", scale: { domain: ["chosen", "random", "included"], range: ["var(--close)", "var(--deep)", "var(--deep)"] } },
          fill: { condition: { test: `datum.arm === ${won}`, value: "var(--accent)" },
            field: "how", type: "nominal", scale: { domain: ["chosen", "random", "included"], range: ["var(--close)", "transparent", "transparent"] } },
          size: { condition: { test: `${isPicked} || datum.arm === ${won}`, value: 90 }, value: 36 } } },
    ],
  });
}

function timelineChart() {
  const { workers, stints, seconds } = told.spending.timeline;
  const span = (from, to) => `from ${number(from)} to ${number(to)} s`;
  const values = stints.flatMap(([row, since, trained, until, arm]) => {
    const who = arm === null ? workers[row] : `${workers[row]}: arm ${arm}`;
    const training = { row, arm, from: since, to: trained, look: "train", tip: `${who}\ntraining ${span(since, trained)}` };
    const looking = { row, arm, from: trained, to: until, look: "look", tip: `${who}\nlooking ${span(trained, until)}` };
    return until > trained ? [training, looking] : [training];
  });
  const merged = stints.some(([, , , , arm]) => arm === null);
  document.getElementById("timeline-look").hidden = merged;
  if (merged) document.getElementById("timeline-work").textContent = "training, or looking at losses";
  return draw("timeline-chart", `When each of ${workers.length} workers worked`, {
    data: { values }, height: rows(workers.length, 12),
    params: [...named(workers), ...zoomable(["x"])],
    mark: { type: "bar", height: { band: 0.7 }, clip: true },
    encoding: {
      y: { field: "row", type: "ordinal", title: null,
        axis: { labelExpr, labelLimit: 110, ticks: false, domain: false } },
      x: { field: "from", type: "quantitative", scale: { domain: [0, seconds], nice: false }, title: "seconds", axis: { tickCount: 6 } },
      x2: { field: "to" },
      color: { field: "look", type: "nominal",
        scale: { domain: ["train", "look"], range: ["var(--bar)", "var(--deep)"] } },
      opacity: { condition: { test: `picked === -1 || ${isPicked}`, value: 1 }, value: 0.3 },
      tooltip: { field: "tip", type: "nominal" },
    },
  });
}

function auditChart() {
  const { points, moved, margin } = told.audit;
  const lacked = `would have had to ${told.metric.improve} by`;
  const values = points.map(([arm, level, needed, close]) => ({ arm, level, needed, close,
    tip: `arm ${arm}, dropped after ${number(level)} pulls\n${lacked} ${number(needed)}` }));
  const line = moved.map(([level, distance]) => ({ level, needed: distance }));
  return draw("audit-chart", "What dropped arms lacked, against how far others still moved", {
    height: 280,
    encoding: {
      x: { field: "level", type: "quantitative", scale: scaled(told.axes.level), title: "pulls when it was dropped",
        axis: { ...levelTicks(), grid: false } },
      y: { field: "needed", type: "quantitative", scale: scaled(margin), title: lacked, axis: ticks(margin, 5) },
    },
    layer: [
      { data: { values: line }, mark: { type: "line", color: "var(--soft)", strokeDash: [4, 3], clip: true,
        point: { color: "var(--soft)", filled: true, size: 12 } } },
      { data: { values }, params: zoomable(["x", "y"]),
        mark: { type: "point", filled: true, opacity: 0.75, clip: true, cursor: "pointer" },
        encoding: {
          color: { condition: [{ test: isPicked, value: "var(--ink)" }, { test: "datum.close", value: "var(--close)" }],
            value: "var(--bar)" },
          size: { condition: { test: isPicked, value: 90 }, value: 30 },
          tooltip: { field: "tip", type: "nominal" },
        } },
    ],
  });
}

// The arm's own curve beside the winner's.
function storyChart(arm) {
  const points = (one, who) => one.levels.map((pulls, place) => ({ pulls, loss: one.losses[place], who }))
    .filter((point) => point.loss !== null);
  const best = armsByNumber.get(won);
  const values = [...(best && best !== arm ? points(best, "best") : []), ...points(arm, "own")];
  return draw("story-chart", `Learning curve of arm ${arm.arm}`, {
    data: { values }, height: 140,
    mark: { type: "line", point: { size: 18, filled: true }, clip: true },
    encoding: {
      x: { field: "pulls", type: "quantitative", scale: scaled(told.axes.level), title: null, axis: { ...levelTicks(), grid: false } },
      y: { field: "loss", type: "quantitative", scale: scaled(told.axes.loss), title: null, axis: ticks(told.axes.loss, 3) },
      color: { field: "who", type: "nominal", scale: { domain: ["best", "own"], range: ["var(--accent)", "var(--ink)"] } },
    },
  });
}
