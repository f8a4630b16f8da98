// The pictures of the page, as specifications for Vega-Lite. Colours are the style sheet's, so that
// dark mode and print need no drawing again. Texts are drawn as they are: nothing is markup.

let told, armsByNumber, won, measure, measured = 0;
const views = new Map();  // element → what is drawn in it
let picked = -1;

// Takes what there is to tell; on a live page, again and again.
function tell(contents) {
  told = contents;
  armsByNumber = new Map(told.arms.map((arm) => [arm.arm, arm]));
  won = told.answer.arm ?? -1;
  measure = measures()[measured] ?? measures()[0];
}

const whole = new Intl.NumberFormat("en");
const sixDigits = (value) => Math.abs(value) < 0.0001 ? value.toExponential() : String(value);
const number = (value) =>
  typeof value !== "number" ? String(value ?? "") :
  Number.isInteger(value) ? whole.format(value) :
  sixDigits(Number(value.toPrecision(6)));  // as losses have in words

function armTip(arm) {
  arm.tip ??= tipOf(arm);
  return arm.tip;
}

function tipOf(arm) {
  const settings = told.parameters.slice(0, 4)
    .map((parameter, place) => [parameter.name, arm.values[place]])
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} = ${number(value)}`);
  const loss = arm.said ? `${told.metric.name} ${arm.said} after ${number(arm.pulls)} pulls` : "no loss seen";
  return [`arm ${arm.arm}: ${arm.fate}`, loss, ...settings].join("\n");
}

const axisStyle = {
  labelColor: "var(--soft)", titleColor: "var(--soft)", gridColor: "var(--line)",
  tickColor: "var(--line)", domainColor: "var(--line)", titleFontWeight: "normal",
  labelFontSize: 12, titleFontSize: 12, labelOverlap: true, labelPadding: 5, titlePadding: 8,
};
const config = {
  background: null, font: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
  view: { stroke: null }, axis: axisStyle, aria: false, legend: { disable: true },
  bar: { color: "var(--bar)" }, text: { fontSize: 12, color: "var(--soft)" },
};

const scaled = ({ log, domain }) => ({ domain, nice: false, ...(log ? { type: "log" } : { zero: false }) });
const rows = (count, most) => count * (count > most ? 14 : 26);

// On a log scale Vega leaves most ticks without a label; those are not drawn.
function ticks({ log }, most = 6) {
  if (!log) return { tickCount: most, format: "~g" };
  const labelled = { condition: { test: "datum.label !== ''", value: 1 }, value: 0 };
  const sign = "datum.value >= 0.001 && datum.value < 1e6 ? '~g' : '~e'";
  return { tickCount: most, gridOpacity: labelled, tickOpacity: labelled,
    labelExpr: `datum.label === '' ? '' : format(datum.value, ${sign})` };
}
const levelTicks = () => {
  const levels = [...new Set(told.narrowing.rungs.map((rung) => rung.level))];
  return levels.length <= 8 ? { values: levels, format: ",d" } : ticks(told.axes.level);
};
// Names are data of a chart, and its labels only look them up.
const named = (names) => [{ name: "names", value: names }];
const labelExpr = "names[datum.value]";
const isPicked = "datum.arm === picked";
const touched = window.matchMedia("(pointer: coarse)").matches;  // there, dragging scrolls the page
const zoomable = (encodings) => touched ? [] : [{
  name: "zoom", bind: "scales",
  select: { type: "interval", encodings, zoom: "wheel![event.ctrlKey || event.metaKey]" },
}];

// Draws a chart into an element, in place of one that is there, which gives it its zoom. Whatever
// has an arm as its datum can be picked.
async function draw(id, description, spec, patch) {
  const element = typeof id === "string" ? document.getElementById(id) : id;
  element.setAttribute("aria-label", description);
  const whole = {
    width: widthOf(element), autosize: { type: "fit-x", contains: "padding" },
    padding: { left: 2, right: 14, top: 4, bottom: 4 }, ...spec,
    params: [{ name: "picked", value: picked }, ...(spec.params ?? [])],
  };
  const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false, config, patch,
    tooltip: (_handler, event, _item, value) => showTip(event, value) };
  const before = views.get(element);
  if (before) element.style.minHeight = `${element.offsetHeight}px`;  // nothing moves meanwhile
  const { view, finalize } = await vegaEmbed(element, whole, options);
  before?.finalize();
  element.querySelector("svg").setAttribute("aria-hidden", "true");  // its element says what it is
  view.addEventListener("click", (_event, item) => {
    if (Number.isInteger(item?.datum?.arm)) pickArm(item.datum.arm);
  });
  views.set(element, { view, finalize });
  fitting.observe(element);
  element.style.minHeight = "";
}

// Charts are as wide as the page lets them be. Asking for the width of one lays out the whole page,
// so Vega is not left to ask again and again.
const widthOf = (element) => Math.max(120, element.clientWidth);
const fitting = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const { view } = views.get(target), width = widthOf(target);
    if (target.clientWidth && view.width() !== width) view.width(width).runAsync();
  }
});

function showTip(event, value) {
  const tip = document.getElementById("tip");
  tip.hidden = !value;
  if (!value) return;
  tip.textContent = value;
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = event.clientY + 18 + tip.offsetHeight > window.innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${above ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18}px`;
}
