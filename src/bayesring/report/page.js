"use strict";

// Tables: clicking a column header sorts by it; clicking again reverses the order.
function keyOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key);
}

function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, two) => {
    const [a, b] = [keyOf(one, column), keyOf(two, column)];
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sortBy(table, column));
    head.replaceChildren(button);
  });
}

// Slices: an array of any order; two modes are shown and the others have sliders.
const data = JSON.parse(document.getElementById("data-of-slices").textContent);
const sizes = data.labels.map((labels) => labels.length);
const strides = sizes.map((_, mode) => sizes.slice(mode + 1).reduce((a, b) => a * b, 1));

function decode(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Uint16Array(bytes.buffer);
}

function numbersOf(text, [low, high]) {
  const codes = decode(text);
  return (place) => (codes[place] === 0 ? NaN : low + ((codes[place] - 1) / 65534) * (high - low));
}

const nearly = numbersOf(data.observed, data.values.range);
const observed = data.whole ? (place) => Math.round(nearly(place)) : nearly;
const mean = numbersOf(data.mean, data.values.range);
const deviation = numbersOf(data.deviation, data.errors.range);

function colourOf(share, colours) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const first = Math.min(Math.floor(place), colours.length - 2);
  return [0, 1, 2].map((c) => colours[first][c] + (place - first) * (colours[first + 1][c] - colours[first][c]));
}

function short(number) {
  if (Math.abs(number) < 1e-9) return "0";
  return number.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function roundNumbers(low, high) {
  const unit = 10 ** Math.floor(Math.log10((high - low) / 4 || 1));
  const step = [1, 2, 5, 10].map((size) => size * unit).find((size) => size >= ((high - low) / 4) * 0.999);
  const numbers = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) numbers.push(k * step);
  return numbers;
}

const explorer = document.getElementById("explorer");
const rowsChoice = document.getElementById("rows");
const columnsChoice = document.getElementById("columns");
const fitColours = document.getElementById("fit-colours");
const panels = [...explorer.querySelectorAll(".panel")].map((panel, which) => ({
  panel,
  stage: panel.querySelector(".stage"),
  canvas: panel.querySelector("canvas"),
  cursor: panel.querySelector(".cursor"),
  numbers: [observed, mean, deviation][which],
  colours: which === 2 ? data.errors : data.values,
  title: panel.querySelector("figcaption").textContent,
}));
const cell = data.start;
let rows = Number(rowsChoice.value);
let columns = Number(columnsChoice.value);

function placeOf(change) {
  return cell.reduce((sum, index, mode) => sum + strides[mode] * (change[mode] ?? index), 0);
}

function escapeText(text) {
  const box = document.createElement("span");
  box.textContent = text;
  return box.innerHTML;
}

// A label, cut if it is long; the whole of it appears when pointed at.
const longest = 16;
function shortText(text) {
  if (text.length <= longest) return escapeText(text);
  return `${escapeText(text.slice(0, longest - 1))}…<title>${escapeText(text)}</title>`;
}

// Places of up to five labels that stand side by side along a line.
function spread(labels, width) {
  const letters = Math.min(Math.max(...labels.map((label) => label.length)), longest);
  const n = Math.min(Math.max(Math.floor(width / (5.5 * letters + 16)), 2), 5, labels.length);
  if (n < 2) return [0];
  const step = Math.ceil((labels.length - 1) / (n - 1));
  return [...labels.keys()].filter((k) => k % step === 0);
}

// Numbers of the current slice, row by row.
function sliceOf(numbers) {
  const corner = placeOf({ [rows]: 0, [columns]: 0 });
  const slice = new Float64Array(sizes[rows] * sizes[columns]);
  for (let i = 0; i < sizes[rows]; i++) {
    for (let j = 0; j < sizes[columns]; j++) {
      slice[i * sizes[columns] + j] = numbers(corner + i * strides[rows] + j * strides[columns]);
    }
  }
  return slice;
}

// Numbers at the ends of the colour scale, over all slices or over the current completed slice.
function endsOf(numbers, colours) {
  if (!fitColours.checked || (data.binary && numbers !== deviation)) return colours.shown;
  const shown = sliceOf(numbers === observed ? mean : numbers).sort();
  const [low, high] = [shown[Math.floor(0.01 * shown.length)], shown[Math.ceil(0.99 * shown.length) - 1]];
  return high > low ? [low, high] : colours.shown;
}

// A scale that some numbers lie beyond says so at that end.
function drawScale(bar, [low, high], [least, most], colours) {
  const slack = 1e-4 * (high - low); // numbers are stored to within less than that
  const cut = [least < low - slack ? "≤ " : "", most > high + slack ? "≥ " : ""];
  const ends = [low, high].map((end, side) => {
    const text = document.createElement("span");
    text.textContent = cut[side] + short(end);
    if (cut[side]) text.title = `numbers go to ${short(side ? most : least)}`;
    return text;
  });
  bar.classList.toggle("cut", cut.some(Boolean));
  const strip = document.createElement("i");
  strip.style.background = `linear-gradient(to right, ${colours.map((colour) => `rgb(${colour})`).join(", ")})`;
  bar.replaceChildren(ends[0], strip, ends[1]);
}

function drawPanel({ panel, stage, canvas, numbers, colours, title }) {
  canvas.width = sizes[columns];
  canvas.height = sizes[rows];
  stage.style.aspectRatio = String(Math.min(Math.max(sizes[columns] / sizes[rows], 0.7), 2.2));
  const [low, high] = endsOf(numbers, colours);
  const picture = new ImageData(sizes[columns], sizes[rows]);
  let [least, most] = [Infinity, -Infinity];
  sliceOf(numbers).forEach((number, place) => {
    if (Number.isNaN(number)) return;
    [least, most] = [Math.min(least, number), Math.max(most, number)];
    const colour = colourOf((number - low) / (high - low), colours.colours);
    picture.data.set([...colour, 255], 4 * place);
  });
  canvas.getContext("2d").putImageData(picture, 0, 0);
  drawScale(panel.querySelector(".scale"), [low, high], [least, most], colours.colours);
  const others = describe(otherModes());
  stage.setAttribute(
    "aria-label",
    `${title}: ${data.value} by ${data.names[rows]} (down) and ${data.names[columns]} (across)` +
      (others ? ` at ${others}` : "") + ". Arrow keys move the cell described below.",
  );
  ticks(panel.querySelector(".row-ticks"), rows, "top");
  ticks(panel.querySelector(".column-ticks"), columns, "left");
}

function ticks(box, mode, side) {
  const n = side === "top" ? 10 : 3;
  const step = Math.ceil(sizes[mode] / n);
  box.replaceChildren();
  for (let index = step > 1 ? Math.floor((sizes[mode] - 1) % step / 2) : 0; index < sizes[mode]; index += step) {
    const tick = document.createElement("span");
    tick.textContent = data.labels[mode][index];
    tick.title = tick.textContent;
    tick.style[side] = `${(100 * (index + 0.5)) / sizes[mode]}%`;
    if (side === "left") tick.style.maxWidth = `${94 / n}%`;
    box.append(tick);
  }
}

function describe(modes) {
  return modes.map((mode) => `${data.names[mode]} = ${data.labels[mode][cell[mode]]}`).join(", ");
}

function otherModes() {
  return sizes.map((_, mode) => mode).filter((mode) => mode !== rows && mode !== columns);
}

function drawSliders() {
  const sliders = document.getElementById("sliders");
  sliders.replaceChildren(
    ...otherModes().map((mode) => {
      const label = document.createElement("label");
      const slider = document.createElement("input");
      const shown = document.createElement("output");
      Object.assign(slider, { type: "range", min: 0, max: sizes[mode] - 1, step: 1, value: cell[mode] });
      slider.dataset.mode = mode;
      const tell = () => {
        shown.textContent = data.labels[mode][cell[mode]];
        slider.setAttribute("aria-valuetext", shown.textContent);
      };
      slider.addEventListener("input", () => {
        cell[mode] = Number(slider.value);
        tell();
        drawSlices();
      });
      tell();
      label.append(data.names[mode], slider, shown);
      return label;
    }),
  );
}

function drawCursor() {
  for (const { cursor } of panels) {
    cursor.style.left = `${(100 * (cell[columns] + 0.5)) / sizes[columns]}%`;
    cursor.style.top = `${(100 * (cell[rows] + 0.5)) / sizes[rows]}%`;
    cursor.style.width = `${100 / sizes[columns]}%`;
    cursor.style.height = `${100 / sizes[rows]}%`;
  }
  const place = placeOf({});
  const seen = observed(place);
  document.getElementById("readout").textContent =
    `${describe([...cell.keys()])}: ${Number.isNaN(seen) ? "not observed" : `observed ${data.whole ? seen : short(seen)}`}, ` +
    `expected ${short(mean(place))} ± ${short(deviation(place))}`;
  drawProfile();
}

// First and last place of every run of two or more points that were not observed.
function gapsOf(points) {
  const gaps = [];
  let first = 0;
  for (let j = 0; j <= points.length; j++) {
    if (j < points.length && Number.isNaN(points[j].seen)) continue;
    if (j - first > 1) gaps.push([first, j - 1]);
    first = j + 1;
  }
  return gaps;
}

// The row of the chosen cell as a curve: expected values with error bars, and observed values.
function drawProfile() {
  const box = document.getElementById("profile");
  const width = Math.max(box.clientWidth, 340);
  const [height, left, bottom, top] = [210, 48, 40, 8];
  const n = sizes[columns];
  const points = [...Array(n).keys()].map((j) => {
    const place = placeOf({ [columns]: j });
    const [mid, bar] = [mean(place), deviation(place)];
    const [least, most] = data.binary ? [0, 1] : [data.least ?? -Infinity, Infinity];
    return { seen: observed(place), mid, low: Math.max(mid - bar, least), high: Math.min(mid + bar, most) };
  });
  const all = points.flatMap((point) => [point.low, point.high, Number.isNaN(point.seen) ? point.mid : point.seen]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const x = (j) => (left + ((width - left - 10) * (j + 0.5)) / n).toFixed(1);
  const y = (v) => (height - bottom - ((height - bottom - top) * (v - low)) / (high - low || 1)).toFixed(1);
  const upper = points.map((point, j) => `${x(j)},${y(point.high)}`);
  const lower = points.map((point, j) => `${x(j)},${y(point.low)}`).reverse();
  const middle = points.map(({ mid }, j) => `${x(j)},${y(mid)}`);
  const dots = points
    .map(({ seen }, j) => (Number.isNaN(seen) ? "" : `<circle class="d1" r="3" cx="${x(j)}" cy="${y(seen)}"/>`))
    .join("");
  const known = points.filter(({ seen }) => !Number.isNaN(seen)).length;
  const gaps = data.ordered[columns] && known > n / 4 ? gapsOf(points) : []; // else all is a gap
  const shades = gaps
    .map(([first, last]) => [Number(x(first - 0.5)), Number(x(last + 0.5))])
    .map(([from, to]) => `<rect class="gap" x="${from}" y="${top}" width="${(to - from).toFixed(1)}" height="${height - bottom - top}"/>`)
    .join("");
  const names = spread(data.labels[columns], width - left - 10)
    .map((j) => `<text class="small ${j > 0.9 * n ? "end" : j < 0.1 * n ? "" : "mid"}" x="${x(j)}" y="${height - bottom + 14}">${shortText(data.labels[columns][j])}</text>`)
    .join("");
  const scale = roundNumbers(low, high)
    .map((v) => `<line class="grid" x1="${left}" x2="${width - 10}" y1="${y(v)}" y2="${y(v)}"/>` +
      `<text class="small end" x="${left - 5}" y="${Number(y(v)) + 3}">${short(v)}</text>`)
    .join("");
  const fixed = describe([...cell.keys()].filter((mode) => mode !== columns));
  const here = `<line class="even" x1="${x(cell[columns])}" x2="${x(cell[columns])}" y1="${top}" y2="${height - bottom}"/>`;
  const alt = escapeText(`${data.value} along ${data.names[columns]} at ${fixed}`);
  box.innerHTML =
    `<figcaption>${alt}</figcaption><svg role="img" viewBox="0 0 ${width} ${height}"><title>${alt}: expected values ` +
    `with error bars, and observed values as dots</title>${shades}${scale}` +
    `<polygon class="band" points="${[...upper, ...lower].join(" ")}"/>${here}` +
    `<polyline class="c0" points="${middle.join(" ")}"/>${dots}${names}` +
    `<text class="name" x="${width / 2}" y="${height - 6}">${escapeText(data.names[columns])}</text></svg>` +
    `<p class="note">Line: expected; area: one standard deviation either way; dots: observed` +
    `${gaps.length ? "; grey: gaps, two or more in a row not observed" : ""}.</p>`;
}

function drawSlices() {
  panels.forEach(drawPanel);
  document.getElementById("cut").hidden = !explorer.querySelector(".scale.cut");
  drawCursor();
}

function chooseModes(changed) {
  const [before, other] = changed === rowsChoice ? [rows, columnsChoice] : [columns, rowsChoice];
  if (rowsChoice.value === columnsChoice.value) other.value = String(before);
  rows = Number(rowsChoice.value);
  columns = Number(columnsChoice.value);
  drawSliders();
  drawSlices();
}

function moveCell(mode, index) {
  cell[mode] = Math.min(Math.max(index, 0), sizes[mode] - 1);
}

for (const { stage } of panels) {
  stage.addEventListener("pointerdown", (event) => {
    const box = stage.getBoundingClientRect();
    moveCell(columns, Math.floor(((event.clientX - box.left) / box.width) * sizes[columns]));
    moveCell(rows, Math.floor(((event.clientY - box.top) / box.height) * sizes[rows]));
    drawCursor();
  });
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [columns, -1], ArrowRight: [columns, 1], ArrowUp: [rows, -1], ArrowDown: [rows, 1] }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    moveCell(step[0], cell[step[0]] + step[1]);
    drawCursor();
  });
}
rowsChoice.addEventListener("change", () => chooseModes(rowsChoice));
columnsChoice.addEventListener("change", () => chooseModes(columnsChoice));
fitColours.addEventListener("change", drawSlices);
window.addEventListener("resize", drawProfile);

// Rows of a table that name a cell can show it in the slices.
for (const table of document.querySelectorAll("table:has(tr[data-jump])")) {
  const head = document.createElement("th");
  head.className = "show";
  table.tHead.rows[0].append(head);
  for (const row of table.tBodies[0].rows) {
    const box = row.insertCell();
    box.className = "show";
    if (row.dataset.jump === undefined) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "jump";
    button.textContent = "show";
    button.addEventListener("click", () => {
      row.dataset.jump.split(",").forEach((index, mode) => moveCell(mode, Number(index)));
      drawSliders();
      drawSlices();
      explorer.scrollIntoView();
      panels[1].stage.focus({ preventScroll: true });
    });
    box.append(button);
  }
}

drawSliders();
drawSlices();
