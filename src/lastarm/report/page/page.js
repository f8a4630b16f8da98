// Fills the page from what is told. Texts become text nodes, never markup.

const at = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A text of the journal; its direction stays its own affair.
const quoted = (text) => make("bdi", {}, String(text));
const NOT_DRAWN = "A chart that is not drawn yet";
for (const chart of document.querySelectorAll(".chart")) chart.setAttribute("aria-label", NOT_DRAWN);
const paragraphs = (sentences) => sentences.map((sentence) => make("p", {}, quoted(sentence)));

function fillFacts(list, facts) {
  list.replaceChildren(...facts.map(([label, value, note]) => {
    const notes = note ? [make("dd", {}, quoted(note))] : [];
    return make("div", {}, make("dt", {}, label), make("dd", {}, quoted(value)), ...notes);
  }));
}

function fillConfig(list, arm) {
  const settings = [...told.parameters.map((parameter, place) => [parameter.name, arm.values[place]]),
    ...told.constant].filter(([, value]) => value !== null);
  list.replaceChildren(...settings.flatMap(([name, value]) =>
    [make("dt", {}, quoted(name)), make("dd", {}, quoted(number(value)))]));
}

function armButton(arm, label = `arm ${arm}`) {
  const button = make("button", { type: "button", class: "link", "aria-label": `arm ${arm}` }, label);
  button.addEventListener("click", (event) => { event.stopPropagation(); pickArm(arm, true); });
  return button;
}

let opener = null;  // where the keyboard was, to be given back
function pickArm(arm, focus = false) {
  const found = armsByNumber.get(arm);
  if (!found) return;
  picked = arm;
  if (!at("story-panel").contains(document.activeElement)) opener = document.activeElement;
  at("story-panel").hidden = false;
  document.body.classList.add("with-story");
  tellStory(found);
  showPicked();
  if (focus) at("story-title").focus({ preventScroll: true });
}

let storyOf = async (arm) => arm.story;
async function tellStory(arm) {
  at("story-title").textContent = `Arm ${arm.arm}`;
  at("story-fate").textContent = arm.fate;
  at("story-fate").classList.toggle("won", arm.arm === won);
  fillConfig(at("story-config"), arm);
  at("story-chart").hidden = !arm.losses.some((loss) => loss !== null);
  at("story-key").hidden = at("story-chart").hidden || arm.arm === won;
  if (!at("story-chart").hidden) storyChart(arm);
  const story = await storyOf(arm);
  if (picked === arm.arm) refill(at("story-text"), paragraphs(story));
}

// What is the same as before is left alone: a reader may have marked a part of it.
function refill(element, children) {
  const before = [...element.childNodes];
  if (before.length !== children.length || !before.every((child, place) => child.isEqualNode(children[place]))) {
    element.replaceChildren(...children);
  }
}

function dropPick() {
  if (picked === -1) return;
  picked = -1;
  if (at("story-panel").contains(document.activeElement)) opener.focus({ preventScroll: true });
  at("story-panel").hidden = true;
  document.body.classList.remove("with-story");
  showPicked();
}

function showPicked() {
  for (const [element, { view }] of views) {
    if (element.id === "curves-chart") view.data("chosen", chosenCurves());
    view.signal("picked", picked).runAsync();
  }
  for (const row of at("arms-table").tBodies[0]?.rows ?? []) {
    row.classList.toggle("picked", Number(row.dataset.arm) === picked);
  }
}

// Rows that have a key stay what they are when the table is filled again: with the keyboard in them,
// and in the order in which they were sorted.
const tables = new Map();  // table → its rows by key, and how they are sorted
function fillTable(table, columns, rows, keyOf = (row) => rows.indexOf(row)) {
  const known = tables.get(table) ?? { elements: new Map(), by: null, down: false, heads: "" };
  tables.set(table, known);
  const missing = (value) => value === null || value === undefined || value === "";
  const body = table.tBodies[0] ?? make("tbody");
  const sorted = () => {
    const column = columns.find(({ name }) => name === known.by);
    if (!column?.sorted) return rows;
    return [...rows].sort((one, other) => {
      const a = column.sorted(one), b = column.sorted(other);
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const order = typeof a === "number" && typeof b === "number" ? a - b
        : String(a).localeCompare(String(b), "en", { numeric: true });
      return known.down ? -order : order;
    });
  };
  const place = () => {
    const wanted = sorted().map((row) => row.element), there = body.rows, focused = document.activeElement;
    wanted.forEach((element, index) => {
      if (there[index] !== element) body.insertBefore(element, there[index] ?? null);
    });
    while (there.length > wanted.length) there[there.length - 1].remove();
    if (focused !== document.activeElement && table.contains(focused)) focused.focus({ preventScroll: true });
  };
  known.sort = (name) => {
    known.down = known.by === name && !known.down;
    known.by = name;
    for (const head of table.tHead.rows[0].cells) {
      head.removeAttribute("aria-sort");
      if (head.dataset.name === name) head.setAttribute("aria-sort", known.down ? "descending" : "ascending");
    }
    known.place();
  };
  known.place = place;
  const heads = JSON.stringify(columns.map(({ name, text }) => [name, text]));
  if (known.heads !== heads) {
    known.heads = heads;
    known.elements.clear();
    body.replaceChildren();
    table.replaceChildren(make("thead", {}, make("tr", {}, ...columns.map((column) => {
      const cell = make("th", { scope: "col", class: column.text ? "text" : "", "data-name": column.name });
      if (column.sorted) {
        const button = make("button", { type: "button" }, quoted(column.name));
        button.addEventListener("click", () => known.sort(column.name));
        cell.append(button);
      } else cell.append(quoted(column.name));
      return cell;
    }))), body);
  }
  const elements = new Map();
  for (const row of rows) {
    const key = keyOf(row), shown = columns.map((column) => column.shown(row));
    const said = shown.map((one) => one instanceof Node ? one.textContent : number(one));
    const before = known.elements.get(key);
    row.element = before?.element ?? make("tr", {}, ...columns.map((column, index) => {
      const cell = index ? make("td") : make("th", { scope: "row" });
      if (column.text) cell.className = "text";
      return cell;
    }));
    said.forEach((words, index) => {
      if (before?.said[index] === words) return;
      const cell = row.element.cells[index];
      cell.replaceChildren(shown[index] instanceof Node ? shown[index] : words);
      if (typeof shown[index] === "string" && words.length > 24) cell.title = words;
    });
    elements.set(key, { element: row.element, said });
  }
  known.elements = elements;
  place();
}

function fillArms() {
  const own = [
    { name: "arm", shown: (row) => armButton(row.arm, String(row.arm)), sorted: (row) => row.arm },
    { name: "place", shown: (row) => row.place, sorted: (row) => row.place },
    { name: told.metric.name, shown: (row) => row.said, sorted: (row) => row.loss },
    { name: "pulls", shown: (row) => row.pulls, sorted: (row) => row.pulls },
    { name: "fate", text: true, shown: (row) => row.fate, sorted: (row) => row.fate },
    { name: "seconds", shown: (row) => Number(row.seconds.toFixed(3)), sorted: (row) => row.seconds },
  ].filter(({ name }) => name !== "seconds" || told.arms.some((arm) => arm.seconds));
  if (told.choosing) own.push(
    { name: "from", text: true, shown: (row) => row.origin?.how ?? "", sorted: (row) => row.origin?.how },
    { name: "expected", shown: (row) => row.origin?.said ?? "", sorted: (row) => row.origin?.expected });
  const measures = told.measures.map(({ name, axis }, place) => ({ name, text: axis === null,
    shown: (row) => row.beside[place], sorted: (row) => row.beside[place] }));
  const settings = told.parameters.map((parameter, place) => ({ name: parameter.name,
    text: parameter.kind === "option" || parameter.kind === "text",
    shown: (row) => row.values[place], sorted: (row) => row.values[place] }));
  const every = told.arms.map((arm, index) => ({ ...arm, place: index + 1 }));
  const columns = [...own, ...measures, ...settings], { rows, refused } = filtered(every, columns);
  fillTable(at("arms-table"), columns, rows, (row) => row.arm);
  const known = tables.get(at("arms-table"));
  if (!known.by || !columns.some(({ name }) => name === known.by)) {
    known.by = null;
    known.sort("place");
  }
  const sorting = `the recommended one, then those that came furthest with the ${told.metric.best}`;
  at("arms-words").textContent = `${number(every.length)} arms: ${sorting}. Sort by a heading; pick an arm to read its story.`;
  at("arms-left").textContent = refused ? `Not understood: ${refused}` : rows.length < every.length ? `${number(rows.length)} of them are shown` : "";
  for (const row of rows) {
    row.element.dataset.arm = row.arm;
    row.element.classList.toggle("won", row.arm === won);
    row.element.classList.toggle("picked", row.arm === picked);
    row.element.onclick = () => pickArm(row.arm);
  }
}

// The rows that the words in the filter leave: each is a text that is somewhere in a row, or a
// condition, such as lr<0.01.
function filtered(rows, columns) {
  const words = at("arms-filter").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const tests = [], unknown = [];
  for (const word of words) {
    const [, name, how, value] = word.match(/^(.+?)(<=|>=|<|>|=)(.+)$/) ?? [];
    const column = how && columns.find((one) => one.name.toLowerCase().replaceAll(" ", "_") === name);
    const figure = Number(value);
    if (how && !column) unknown.push(word);
    else if (!how) tests.push((row) => columns.some(({ shown }) => {
      const said = shown(row);
      return String(said instanceof Node ? said.textContent : said ?? "").toLowerCase().includes(word);
    }));
    else tests.push((row) => {
      const found = (column.sorted ?? column.shown)(row);
      if (found === null || found === undefined || found === "") return false;
      if (typeof found !== "number") return how === "=" && String(found).toLowerCase() === value;
      return how === "<" ? found < figure : how === ">" ? found > figure : how === "<=" ? found <= figure
        : how === ">=" ? found >= figure : found === figure;
    });
  }
  return { rows: rows.filter((row) => tests.every((test) => test(row))), refused: unknown.join(" ") };
}

function fillAnswer() {
  const { arm, level, said, test_loss: test, runner_up: next, cost } = told.answer;
  const best = armsByNumber.get(arm);
  fillFacts(at("answer-facts"), best ? [
    [told.metric.name, said, `after ${number(level)} pulls`],
    ...(test === null ? [] : [[`test ${told.metric.name}`, number(test), told.looked]]),
    ...told.spending.facts.slice(0, 1),
  ] : []);
  if (best) fillConfig(at("answer-config"), best);
  else at("answer-config").replaceChildren();
  at("cost").hidden = !cost.length;
  at("cost-words").replaceChildren(...paragraphs(cost));
  at("runner-up").hidden = next === null || !armsByNumber.has(next);
  if (at("runner-up").hidden) return;
  const [first, ...others] = armsByNumber.get(next).story;
  refill(at("runner-up-story"), [
    make("p", {}, "The next best is ", armButton(next), ". ", quoted(first)), ...paragraphs(others)]);
}

function fillRungs() {
  at("rungs-words").textContent = told.narrowing.words;
  const column = (name, shown) => ({ name, shown });
  fillTable(at("rungs-table"), [
    { name: "rung", text: true, shown: (rung) => rung.name }, column("brought to", (rung) => rung.level),
    column("arms", (rung) => rung.arms), column("went on", (rung) => rung.on),
    column("pulls", (rung) => rung.pulls), column("seconds", (rung) => rung.train_seconds + rung.loss_seconds),
    column(told.metric.best, (rung) => rung.best), column("of arm", (rung) => rung.best_arm),
    column("last to go on", (rung) => rung.cut),
  ], told.narrowing.rungs.map((rung) => ({ ...rung })));
}

function fillSettings() {
  const most = 12;
  at("settings-title").textContent = `Settings against ${told.metric.name}`;
  at("importance").hidden = told.parameters.length === 0;
  at("settings-words").textContent = told.parameters.length === 0 ? "No setting varies between arms."
    : `Each point is an arm with its latest ${told.metric.name}. The fainter it is, the earlier the arm was dropped.`
      + (told.parameters.length > most ? ` The ${most} that explain most are drawn.` : "");
  const drawable = ({ parameter, place }) => parameter.kind !== "text"
    && told.arms.some((arm) => arm.values[place] !== null && arm.loss !== null);
  const found = told.parameters.map((parameter, place) => ({ parameter, place })).filter(drawable).slice(0, most);
  const panels = found.map(({ parameter, place }) => {
    const { name } = parameter;
    if (!panelOf.has(name)) {
      const chart = make("div", { class: "chart", role: "img", "aria-label": NOT_DRAWN });
      panelOf.set(name, { chart, figure: make("figure", {}, make("figcaption", {}, quoted(name)), chart) });
    }
    return { ...panelOf.get(name), draw: () => settingChart(panelOf.get(name).chart, parameter, place) };
  });
  const figures = panels.map(({ figure }) => figure);
  if (figures.some((figure, index) => at("panels").children[index] !== figure)) at("panels").replaceChildren(...figures);
  return panels;
}
const panelOf = new Map();  // the name of a setting → its figure

function fillChoosing() {
  at("choosing").hidden = at("choosing-link").hidden = !told.choosing;
  if (told.choosing) refill(at("choosing-words"), paragraphs(told.choosing.words));
}

function fillSpending() {
  fillFacts(at("spending-facts"), told.spending.facts);
  refill(at("spending-words"), paragraphs(told.spending.words));
}

function fillFailures() {
  const children = told.failures.length ? [] : [make("p", {}, "Nothing.")];
  for (const { error, count, arms, traceback } of told.failures) {
    const who = make("p", { class: "soft" }, `${number(count)} ${count === 1 ? "arm" : "arms"}: `);
    arms.forEach((arm, index) => who.append(index ? ", " : "", armButton(arm)));
    if (count > arms.length) who.append(", …");
    children.push(make("h3", {}, quoted(error)), who);
    if (traceback) {
      children.push(make("details", {}, make("summary", {}, "The traceback of the first"),
        make("pre", { tabindex: "0" }, quoted(traceback))));
    }
  }
  if (failuresTold !== JSON.stringify(told.failures)) at("failures-list").replaceChildren(...children);
  failuresTold = JSON.stringify(told.failures);  // what was opened stays open
}
let failuresTold = "";

function fillAudit() {
  at("audit-figure").hidden = !told.audit?.points.length;
  refill(at("audit-words"), paragraphs(told.audit?.words ?? ["Nothing has been dropped."]));
  refill(at("audit-closest"), (told.audit?.closest ?? []).map(({ arm, words }) =>
    make("li", {}, make("p", {}, armButton(arm), ": ", quoted(words)))));
}

function fillNext() {
  refill(at("next-steps"), told.next.flatMap(({ words, command }) => [make("p", {}, quoted(words)),
    ...(command ? [make("pre", { class: "command", tabindex: "0" }, quoted(command))] : [])]));
}

function noteCurves() {
  const { outside } = measure.axis;
  at("curves-note").textContent =
    (touched ? "" : "Drag to move, Ctrl and wheel (or pinch) to zoom, double-click to go back. ")
    + (outside ? `${number(outside)} ${outside === 1 ? "point lies" : "points lie"} outside of the picture.` : "");
}

// What the learning curves show, where there is something to choose.
function fillChoice() {
  const names = measures().map(({ name }) => name), select = at("curves-measure");
  at("curves-choice").hidden = names.length < 2;
  if (JSON.stringify([...select.options].map((option) => option.text)) === JSON.stringify(names)) return;
  select.replaceChildren(...names.map((name, place) => make("option", { value: place }, name)));
  select.onchange = async () => {
    measured = Number(select.value);
    measure = measures()[measured];
    await curvesChart();
    noteCurves();
    showPicked();
  };
}



// All that is told in words and tables, but for the table of arms.
function fillWords() {
  document.title = `${told.headline} · lastarm`;
  at("headline").textContent = told.headline;
  at("journal").replaceChildren(quoted(told.journal));
  at("state").textContent = told.state;
  at("search").replaceChildren(quoted(told.search));
  at("notes").replaceChildren(...paragraphs(told.notes));
  noteCurves();
  fillAnswer();
  fillRungs();
  fillChoosing();
  fillSpending();
  fillFailures();
  fillAudit();
  fillNext();
  at("timeline").hidden = !told.spending.timeline.stints.length && !told.spending.words.length;
}

// The charts in their order: where each is, which parts of what is told it shows, and how it is
// drawn. Those that there is nothing for are left out.
function chartsOf(panels) {
  const across = panels.length > 1, settings = ["arms", "parameters", "metric", "axes"];
  at("parallel").hidden = !across;
  const seen = told.arms.some((arm) => arm.losses.length);
  return [
    ...(seen ? [{ id: "curves-chart", shows: ["arms", "axes", "measures", "metric", "answer", "narrowing"], draw: curvesChart }] : []),
    ...(told.narrowing.rungs.length ? [{ id: "rungs-arms", shows: ["narrowing", "axes"], draw: () => Promise.all(rungCharts()) }] : []),
    { id: "arms-table", shows: ["arms", "order", "measures", "metric", "parameters", "answer"], draw: fillArms },
    ...(told.parameters.length ? [{ id: "importance-chart", shows: ["parameters"], draw: importanceChart }] : []),
    ...(told.choosing ? [{ id: "choosing-chart", shows: ["choosing", "answer"], draw: choosingChart }] : []),
    ...panels.map(({ chart, draw }) => ({ id: chart, shows: settings, draw })),
    ...(across ? [{ id: "parallel-chart", shows: settings, draw: parallelChart }] : []),
    ...(told.spending.timeline.stints.length ? [{ id: "timeline-chart", shows: ["spending", "stints"], draw: timelineChart }] : []),
    ...(told.audit?.points.length ? [{ id: "audit-chart", shows: ["audit", "axes"], draw: auditChart }] : []),
  ];
}

// What the page answers to, once and for all.
function listen() {
  at("story-close").addEventListener("click", dropPick);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") dropPick(); });
  at("arms-filter").addEventListener("input", fillArms);
  at("curves-best").value = highlighted;
  at("curves-best").addEventListener("change", () => {
    highlighted = Number(at("curves-best").value);
    showPicked();
  });
  pickNearest();
}

const breath = () => new Promise((done) => setTimeout(done));
async function fillPage() {
  fillWords();
  const charts = chartsOf(fillSettings());
  listen();
  for (const { draw } of charts) {
    await breath();  // so that the page answers in between
    await draw();
  }
  document.body.dataset.drawn = views.size;
  fillChoice();  // all other charts are in place
  await breath();
  at("arms-table").parentElement.classList.remove("later");  // a long table takes long to lay out
}
