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
const paragraphs = (sentences) => sentences.map((sentence) => make("p", {}, quoted(sentence)));

function fillFacts(list, facts) {
  for (const [label, value, note] of facts) {
    const notes = note ? [make("dd", {}, quoted(note))] : [];
    list.append(make("div", {}, make("dt", {}, label), make("dd", {}, quoted(value)), ...notes));
  }
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
  at("story-title").textContent = `Arm ${arm}`;
  at("story-fate").textContent = found.fate;
  at("story-fate").classList.toggle("won", arm === won);
  at("story-text").replaceChildren(...paragraphs(found.story));
  fillConfig(at("story-config"), found);
  at("story-chart").hidden = !found.losses.some((loss) => loss !== null);
  at("story-key").hidden = at("story-chart").hidden || arm === won;
  redrawStory(found);
  showPicked();
  if (focus) at("story-title").focus({ preventScroll: true });
}

let forget = () => {};
async function redrawStory(arm) {
  forget();
  views.splice(drawn);
  forget = at("story-chart").hidden ? () => {} : await storyChart(arm);
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
  for (const view of views.slice(0, drawn)) {
    if (view.container().id === "curves-chart") view.data("chosen", chosenCurves());
    view.signal("picked", picked).runAsync();
  }
  for (const row of at("arms-table").tBodies[0].rows) {
    row.classList.toggle("picked", Number(row.dataset.arm) === picked);
  }
}

function fillTable(table, columns, rows) {
  const body = make("tbody");
  const heads = columns.map((column) => {
    const cell = make("th", { scope: "col", class: column.text ? "text" : "" });
    if (!column.sorted) {
      cell.append(quoted(column.name));
      return cell;
    }
    const button = make("button", { type: "button" }, quoted(column.name));
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const missing = (value) => value === null || value === undefined || value === "";
      const ordered = [...rows].sort((one, other) => {
        const a = column.sorted(one), b = column.sorted(other);
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        const order = typeof a === "number" && typeof b === "number" ? a - b
          : String(a).localeCompare(String(b), "en", { numeric: true });
        return down ? -order : order;
      });
      body.append(...ordered.map((row) => row.element));
    });
    cell.append(button);
    return cell;
  });
  for (const row of rows) {
    row.element = make("tr", {}, ...columns.map((column, place) => {
      const shown = column.shown(row);
      const cell = place ? make("td") : make("th", { scope: "row" });
      if (column.text) cell.className = "text";
      cell.append(shown instanceof Node ? shown : number(shown));
      if (typeof shown === "string" && shown.length > 24) cell.title = shown;
      return cell;
    }));
    body.append(row.element);
  }
  table.append(make("thead", {}, make("tr", {}, ...heads)), body);
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
  const rows = told.arms.map((arm, index) => ({ ...arm, place: index + 1 }));
  fillTable(at("arms-table"), [...own, ...measures, ...settings], rows);
  at("arms-table").querySelector("th:nth-child(2)").setAttribute("aria-sort", "ascending");
  at("arms-words").textContent = `${number(rows.length)} arms: the recommended one, then those that came `
    + `furthest with the ${told.metric.best}. Sort by a heading; pick an arm to read its story.`;
  for (const row of rows) {
    row.element.dataset.arm = row.arm;
    row.element.classList.toggle("won", row.arm === won);
    row.element.addEventListener("click", () => pickArm(row.arm));
  }
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
  at("cost").hidden = !cost.length;
  at("cost").append(...paragraphs(cost));
  if (next === null) return;
  at("runner-up").hidden = false;
  const [first, ...others] = armsByNumber.get(next).story;
  at("runner-up-story").append(
    make("p", {}, "The next best is ", armButton(next), ". ", quoted(first)), ...paragraphs(others));
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
  return told.parameters.map((parameter, place) => ({ parameter, place })).filter(drawable).slice(0, most)
    .map(({ parameter, place }) => {
      const chart = make("div", { class: "chart", role: "img" });
      at("panels").append(make("figure", {}, make("figcaption", {}, quoted(parameter.name)), chart));
      return () => settingChart(chart, parameter, place);
    });
}

function fillChoosing() {
  if (!told.choosing) return;
  at("choosing").hidden = at("choosing-link").hidden = false;
  at("choosing-words").append(...paragraphs(told.choosing.words));
}

function fillSpending() {
  fillFacts(at("spending-facts"), told.spending.facts);
  at("spending-words").append(...paragraphs(told.spending.words));
}

function fillFailures() {
  if (!told.failures.length) at("failures-list").append(make("p", {}, "Nothing."));
  for (const { error, count, arms, traceback } of told.failures) {
    const who = make("p", { class: "soft" }, `${number(count)} ${count === 1 ? "arm" : "arms"}: `);
    arms.forEach((arm, index) => who.append(index ? ", " : "", armButton(arm)));
    if (count > arms.length) who.append(", …");
    at("failures-list").append(make("h3", {}, quoted(error)), who);
    if (traceback) {
      at("failures-list").append(make("details", {}, make("summary", {}, "The traceback of the first"),
        make("pre", { tabindex: "0" }, quoted(traceback))));
    }
  }
}

function fillAudit() {
  at("audit-figure").hidden = !told.audit?.points.length;
  at("audit-words").append(...paragraphs(told.audit?.words ?? ["Nothing has been dropped."]));
  for (const { arm, words } of told.audit?.closest ?? []) {
    at("audit-closest").append(make("li", {}, make("p", {}, armButton(arm), ": ", quoted(words))));
  }
}

function fillNext() {
  for (const { words, command } of told.next) {
    at("next-steps").append(make("p", {}, quoted(words)));
    if (command) at("next-steps").append(make("pre", { class: "command", tabindex: "0" }, quoted(command)));
  }
}

function noteCurves() {
  const { outside } = measure.axis;
  at("curves-note").textContent =
    (touched ? "" : "Drag to move, Ctrl and wheel (or pinch) to zoom, double-click to go back. ")
    + (outside ? `${number(outside)} ${outside === 1 ? "point lies" : "points lie"} outside of the picture.` : "");
}

// What the learning curves show, where there is something to choose.
function fillChoice() {
  const choices = [compared, ...beside.filter(({ axis }) => axis !== null)];
  at("curves-choice").hidden = choices.length < 2;
  at("curves-measure").append(...choices.map(({ name }, place) => make("option", { value: place }, name)));
  at("curves-measure").addEventListener("change", async (event) => {
    await drawCurvesOf(choices[event.target.value]);
    noteCurves();
    showPicked();
  });
}

let drawn = 0;
async function fillPage() {
  document.title = `${told.headline} · lastarm`;
  at("headline").textContent = told.headline;
  at("journal").append(quoted(told.journal));
  at("state").textContent = told.state;
  at("search").append(quoted(told.search));
  at("notes").append(...paragraphs(told.notes));
  noteCurves();
  fillAnswer();
  fillRungs();
  fillChoosing();
  fillSpending();
  fillFailures();
  fillAudit();
  fillNext();
  const panels = fillSettings();
  const across = panels.length > 1;
  at("parallel").hidden = !across;
  at("timeline").hidden = !told.spending.timeline.stints.length && !told.spending.words.length;
  at("story-close").addEventListener("click", dropPick);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") dropPick(); });

  const breath = () => new Promise((done) => setTimeout(done));
  await breath();
  if (told.arms.some((arm) => arm.losses.length)) {
    forgetCurves = await curvesChart();
    pickNearest();
  }
  if (told.narrowing.rungs.length) await Promise.all(rungCharts());
  const others = [fillArms, ...(told.parameters.length ? [importanceChart] : []),
    ...(told.choosing ? [choosingChart] : []), ...panels, ...(across ? [parallelChart] : []),
    ...(told.spending.timeline.stints.length ? [timelineChart] : []),
    ...(told.audit?.points.length ? [auditChart] : [])];
  for (const chart of others) {
    await breath();  // so that the page answers in between
    await chart();
  }
  drawn = views.length;
  document.body.dataset.drawn = drawn;
  if (told.arms.some((arm) => arm.losses.length)) fillChoice();  // all other charts are in place
  await breath();
  at("arms-table").parentElement.classList.remove("later");  // a long table takes long to lay out
}

fillPage();
