// The page while a search runs: takes what is new from the server, and draws again what has changed.

const LEAST = 400;  // milliseconds between two drawings
highlighted = 3;
let shown = 0;  // the search that is shown
let known = "";  // what the server calls all that came so far
let parts = new Map(), stints = [], changed = new Set(), source = null, ended = false;
const searches = new Map();  // number → its summary

const part = (name) => parts.get(name);

function take(message) {
  const { anew, parts: news, others } = JSON.parse(message);
  if (anew) [parts, stints] = [new Map(), []];
  for (const [name, value] of Object.entries(news)) {
    if (name === "stints") {
      stints.splice(value.from);
      for (const stint of value.stints) stints.push(stint);
    } else parts.set(name, value);
    changed.add(/^(arm|settings) /.test(name) ? "arms" : name);
  }
  if (part("summary")) searches.set(shown, part("summary"));
  for (const [number, summary] of Object.entries(others)) {
    searches.set(Number(number), summary);
    changed.add("summary");
  }
  soon();
}

function connect() {
  source?.close();
  source = new EventSource(`news?search=${shown}${known && `&since=${known}`}`);
  source.addEventListener("open", () => say("Live: this page follows the journal."));
  source.addEventListener("message", ({ data, lastEventId }) => {
    known = lastEventId;
    take(data);
  });
  source.addEventListener("end", () => {
    ended = true;
    source.close();
    say("The server has ended. This is what it sent last.");
  });
  source.addEventListener("error", ({ target }) => {
    if (ended) return;
    say("The server does not answer. Trying again…");
    if (target.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
    setTimeout(() => { if (target === source) connect(); }, 2000);
  });
}

let said = "";
function say(words) {
  if (words !== said) at("connection").textContent = words;
  said = words;
}

function show(search) {
  if (search === shown) return;
  dropPick();
  [shown, known, parts, stints, told] = [search, "", new Map(), [], undefined];
  for (const name of ["searches", "now", "best", "filling", "summary"]) changed.add(name);
  stale.clear();
  at("save").href = `report?search=${shown}`;
  connect();
}

// Drawing -------------------------------------------------------------------------------------------

let waits = false, busy = false, took = 0;
function soon() {
  if (waits || busy) return;
  waits = true;
  setTimeout(update, Math.max(LEAST, 2 * took));
}

async function update() {
  [waits, busy] = [false, true];
  const began = performance.now(), news = changed;
  changed = new Set();
  try {
    await fillNow(news);
    if (part("headline")) await fillTold(news);
    else hideTold();
    document.body.dataset.lines = part("now")?.lines ?? 0;
    await drawStale();
  } finally {
    took = performance.now() - began;
    busy = false;
    if (changed.size) soon();
  }
}

// Only charts that are in sight are drawn; the others wait until they are.
const stale = new Map();  // element → how it is drawn
const inSight = new Set();
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) inSight.add(target);
    else inSight.delete(target);
  }
  if ([...inSight].some((element) => stale.has(element))) soon();
}, { rootMargin: "300px" });
const observed = new WeakSet();

function mark(element, draw) {
  stale.set(element, draw);
  if (observed.has(element)) return;
  observed.add(element);
  sight.observe(element);
  const { top, bottom } = element.getBoundingClientRect();
  if (top < window.innerHeight + 300 && bottom > -300) inSight.add(element);
}

async function drawStale() {
  for (const [element, draw] of [...stale]) {
    if (!inSight.has(element)) continue;
    stale.delete(element);
    await breath();
    await draw();
  }
  document.body.dataset.drawn = views.size;
}

// What goes on --------------------------------------------------------------------------------------

const clock = (seconds) => {
  const whole = Math.max(0, Math.round(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${number(h)} h ${m} min` : m ? `${m} min ${s} s` : `${s} s`;
};
const timeOf = (since) => new Date(1000 * since).toLocaleTimeString();

async function fillNow(news) {
  const now = part("now"), summary = part("summary");
  if (!now || !summary) return;
  if (news.has("now")) {
    at("state").textContent = now.state;
    at("trouble").hidden = !now.trouble || now.state === "waiting";
    at("trouble").textContent = `Nothing more can be read: ${now.trouble}.`;
    if (!part("headline")) {
      const waits = now.state === "waiting" ? `Waiting for ${summary.name}: ${now.trouble}`
        : now.reading < 1 ? `Reading ${summary.name}: ${Math.round(100 * now.reading)} %` : summary.name;
      at("headline").textContent = waits;
      document.title = `${waits} · lastarm`;
    }
    const used = now.budget ? now.pulls / now.budget : 0;
    at("used").hidden = !now.budget;
    at("used").value = used;
    fillFacts(at("now-facts"), [
      [summary.maximize ? `highest ${summary.metric}` : `lowest ${summary.metric}`, summary.said || "none yet", ""],
      ["pulls", number(now.pulls), now.budget ? `${Math.floor(100 * used)} % of ${number(now.budget)}` : ""],
      ["time left", now.left === null ? "not known" : `about ${clock(now.left)}`, now.left === null ? "" : "at the latest pace"],
      ["arms", number(now.arms), now.failed ? `${number(now.failed)} failed` : ""],
      ["looks", number(now.looks), ""],
    ]);
    fillAtWork(now);
  }
  if (news.has("best") || news.has("summary")) {
    at("best-title").textContent = `${summary.maximize ? "Highest" : "Lowest"} ${summary.metric} so far`;
    mark(at("best-chart"), () => bestChart("best-chart", [[shown, summary]]));
  }
  if (news.has("filling")) mark(at("filling-chart"), fillingChart);
  if (news.has("summary") && searches.size > 1) {
    fillSearches();
    mark(at("compared-chart"), () => bestChart("compared-chart", comparable()));
  }
}

function fillAtWork(now) {
  const known = now.at_work.filter(({ since }) => since !== null).length === now.at_work.length;
  at("at-work-words").textContent = !now.at_work.length ? "No pull is under way."
    : known ? "" : "The journal does not say when each pull was begun, or by whom.";
  at("at-work").parentElement.hidden = !now.at_work.length;
  fillTable(at("at-work"), [
    { name: "arm", shown: (row) => told && armsByNumber.has(row.arm) ? armButton(row.arm, String(row.arm)) : String(row.arm) },
    { name: "worker", text: true, shown: (row) => row.worker || "not recorded" },
    { name: "from", shown: (row) => row.from },
    { name: "to", shown: (row) => row.upto },
    { name: "since", text: true, shown: (row) => row.since === null ? "not recorded" : timeOf(row.since) },
    { name: "for", shown: (row) => row.since === null ? "" : clock(Date.now() / 1000 - row.since) },
  ], now.at_work, (row) => `${row.arm} ${row.upto}`);
}
setInterval(() => { if (part("now")?.at_work.length && !ended) fillAtWork(part("now")); }, 1000);

// The best so far of one search, or of several in one picture.
const COLOURS = ["var(--accent)", "var(--close)", "#0f8a7e", "#2f6fde", "#a16207", "#c0307a", "#5a8a1f", "var(--soft)"];
const DASHES = [[], [6, 3], [2, 3]];
const colourOf = (place) => COLOURS[place % COLOURS.length];
const comparable = () => [...searches].filter(([, one]) => one.metric === searches.get(shown)?.metric && one.line.length);

function bestChart(id, lines) {
  const values = lines.flatMap(([place, { name, line, pulls, metric }]) => {
    const last = line.at(-1);
    const points = last ? [...line, [Math.max(pulls, last[0]), last[1]]] : [];
    return points.map(([at, value]) => ({ place, pulls: at, value, tip: `${name}\n${metric} ${number(value)} after ${number(at)} pulls` }));
  });
  if (!values.length) return null;
  const scale = { zero: false, nice: false };
  const places = lines.map(([place]) => place);
  return draw(id, `Best so far against pulls, of ${lines.length} ${lines.length === 1 ? "search" : "searches"}`, {
    data: { values }, height: 190,
    mark: { type: "line", interpolate: "step-after", strokeWidth: 2, clip: true },
    encoding: {
      x: { field: "pulls", type: "quantitative", title: "pulls", axis: { tickCount: 5, grid: false, format: "~s" }, scale: { nice: false } },
      y: { field: "value", type: "quantitative", title: null, scale, axis: { tickCount: 4, format: "~g" } },
      detail: { field: "place" }, tooltip: { field: "tip", type: "nominal" },
      color: { field: "place", type: "nominal", scale: { domain: places, range: places.map(colourOf) } },
      strokeDash: { field: "place", type: "nominal", scale: { domain: places, range: places.map((place) => DASHES[Math.floor(place / COLOURS.length) % DASHES.length].length ? DASHES[Math.floor(place / COLOURS.length) % DASHES.length] : [1, 0]) } },
    },
  });
}

function fillingChart() {
  const filling = part("filling");
  if (!filling.length) return null;
  const most = 12, rungs = filling.slice(-most).map(([level, begun, came], row) => ({ level, begun, came, row }));
  const values = rungs.flatMap(({ level, begun, came, row }) => {
    const tip = `${number(level)} pulls\n${number(came)} of ${number(begun)} arms came to it`;
    return [{ row, value: came, look: "on", order: 0, tip }, { row, value: Math.max(0, begun - came), look: "way", order: 1, tip }];
  });
  return draw("filling-chart", `How many arms began each level and came to it: ${rungs.map(({ level, begun, came }) => `${came} of ${begun} to ${level}`).join(", ")}`, {
    data: { values }, params: named(rungs.map(({ level }) => number(level))), height: rows(rungs.length, 8),
    mark: { type: "bar", height: { band: 0.72 } },
    encoding: {
      y: { field: "row", type: "ordinal", title: "pulls", axis: { labelExpr, ticks: false, domain: false } },
      x: { field: "value", type: "quantitative", stack: "zero", title: "arms", axis: { tickCount: 4, domain: false } },
      color: { field: "look", type: "nominal", scale: { domain: ["on", "way"], range: ["var(--bar)", "var(--deep)"] } },
      order: { field: "order" }, tooltip: { field: "tip", type: "nominal" },
    },
  });
}

function fillSearches() {
  at("searches").hidden = false;
  const all = [...searches].sort(([one], [other]) => one - other).map(([place, one]) => ({ ...one, place }));
  const alike = comparable().length;
  at("searches-words").textContent = `${number(all.length)} journals are followed. Pick one to see more of it.`
    + (alike < all.length ? ` Those with the same figure as the one that is shown are compared.` : "");
  fillTable(at("searches-table"), [
    { name: "search", text: true, sorted: (row) => row.name, shown: (row) => {
      const button = make("button", { type: "button", class: "link" }, quoted(row.name));
      const swatch = make("i", { class: "swatch" });
      swatch.style.background = colourOf(row.place);
      button.setAttribute("aria-current", row.place === shown);
      button.addEventListener("click", () => show(row.place));
      return make("span", {}, swatch, button);
    } },
    { name: "state", text: true, sorted: (row) => row.state, shown: (row) => row.state },
    { name: "best", sorted: (row) => row.best, shown: (row) => row.said ? `${row.metric} ${row.said}` : "" },
    { name: "pulls", sorted: (row) => row.pulls, shown: (row) => row.budget ? `${number(row.pulls)} of ${number(row.budget)}` : number(row.pulls) },
    { name: "failed", sorted: (row) => row.failed, shown: (row) => row.failed },
    { name: "policy", text: true, sorted: (row) => row.policy, shown: (row) => row.policy },
  ], all, (row) => row.place);
  for (const row of all) row.element.classList.toggle("picked", row.place === shown);
}

// The report, as it is now --------------------------------------------------------------------------

function toldNow() {
  const contents = Object.fromEntries([...parts].filter(([name]) => !/^(arm|settings) /.test(name)));
  const ranked = contents.order, known = new Set(ranked);
  const later = [...parts.keys()].filter((name) => name.startsWith("arm ")).map((name) => Number(name.slice(4)))
    .filter((arm) => !known.has(arm));  // that began since
  const arms = [...ranked, ...later].filter((arm) => parts.has(`arm ${arm}`)).map((arm) => {
    const settings = part(`settings ${arm}`) ?? {};
    return { ...part(`arm ${arm}`), story: contents.stories[arm] ?? [], tip: undefined,
      values: contents.parameters.map(({ name }) => settings[name] ?? null) };
  });
  const levels = arms.flatMap((arm) => arm.levels.slice(-1)), { level } = contents.axes;
  const deepest = Math.max(level.domain[1], ...levels.slice(0, 5000).map((one) => 1.05 * one));
  return { ...contents, arms, axes: { ...contents.axes, level: { ...level, domain: [level.domain[0], deepest] } },
    spending: { ...contents.spending, timeline: { ...contents.spending.timeline, stints } } };
}

// Of another search, or another file, nothing that was told before is true.
function hideTold() {
  if (told) dropPick();
  told = undefined;
  document.body.classList.add("early");
  fillDropped([]);
}

function fillDropped(dropped) {
  refill(at("dropped"), dropped.length ? [make("ul", {}, ...dropped.map(({ arm, words }) =>
    make("li", {}, make("p", {}, armButton(arm), ": ", quoted(words)))))] : [make("p", { class: "soft" }, "None yet.")]);
}

let listens = false;
async function fillTold(news) {
  const first = told === undefined;
  document.body.classList.remove("early");
  tell(toldNow());
  at("state").textContent = part("now").state;
  fillWords();
  at("state").textContent = part("now").state;
  fillChoice();
  fillDropped(told.dropped);
  if (!listens) listen();
  listens = true;
  for (const { id, shows, draw } of chartsOf(fillSettings())) {
    const element = typeof id === "string" ? at(id) : id;
    if (first || shows.some((name) => news.has(name))) mark(element, draw);
  }
  if (picked !== -1 && armsByNumber.has(picked) && news.has("arms")) tellStory(armsByNumber.get(picked));
  at("arms-table").parentElement.classList.remove("later");
}

// The story of an arm is asked for when somebody wants to read it.
storyOf = async (arm) => {
  if (arm.story.length) return arm.story;
  const answer = await fetch(`story?search=${shown}&arm=${arm.arm}`).catch(() => null);
  return answer?.ok ? answer.json() : ["The server does not answer."];
};

say("Connecting…");
connect();
