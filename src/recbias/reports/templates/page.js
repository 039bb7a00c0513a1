"use strict";
// The page is complete without this script, which opens sections, sorts tables, filters comparisons, copies texts, saves plots as
// PNG, and unfolds the results and divides wide tables for print.

// The number of a cell, or the first one in its text.
const numberOf = (cell) => Number(cell.dataset.value ?? parseFloat(cell.textContent.replace("−", "-")));

// Undefined values come last in both orders.
const compareRows = (a, b, column, sign, numeric) => {
  const [x, y] = [a.cells[column], b.cells[column]];
  const [p, q] = [numberOf(x), numberOf(y)];
  if (!numeric && x.dataset.value === undefined && y.dataset.value === undefined) {
    return sign * x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
  }
  if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) - Number.isNaN(q);
  return sign * (p - q);
};

const sortBy = (table, header) => {
  const column = header.cellIndex;
  const first = header.dataset.first || "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const order = header.getAttribute("aria-sort") === first ? second : first;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  rows.sort((a, b) => compareRows(a, b, column, order === "ascending" ? 1 : -1, header.classList.contains("n")));
  body.append(...rows);
  for (const cell of header.parentNode.cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
};

for (const table of document.querySelectorAll("table.sortable")) {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sortBy(table, header));
  }
}

// Long names break where a reader expects it.
for (const name of document.querySelectorAll("thead .name, tbody th")) {
  const parts = name.textContent.split(/(?<=[_/])|(?=[@(])/);
  if (name.childElementCount === 0 && parts.length > 1) {
    name.replaceChildren(...parts.flatMap((part) => [document.createElement("wbr"), part]).slice(1));
  }
}

const openTarget = () => {
  const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (section?.matches("details")) {
    section.open = true;
    section.scrollIntoView();
  }
};
addEventListener("hashchange", openTarget);
openTarget();
for (const link of document.querySelectorAll("nav a")) link.addEventListener("click", () => setTimeout(openTarget));

for (const pairs of document.querySelectorAll(".pairs")) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "metric, model, group, test";
  label.append("Filter ", input);
  pairs.querySelector(".tools").prepend(label);
  input.addEventListener("input", () => {
    const query = input.value.trim().toLocaleLowerCase();
    for (const row of pairs.querySelector("tbody").rows) {
      const names = Array.from(row.cells, (cell) => cell.textContent).join("\n").toLocaleLowerCase();
      row.hidden = !names.includes(query);
    }
  });
}

// A sentence below each table and plot that ends beyond its box.
for (const box of document.querySelectorAll(".box")) {
  const cue = document.createElement("p");
  cue.className = "cue";
  box.after(cue);
  const update = () => {
    const wide = box.scrollWidth > box.clientWidth + 1;
    const tall = box.scrollHeight > box.clientHeight + 1;
    cue.textContent = wide && tall ? "Scroll sideways and down for more." : wide ? "Scroll sideways for more." : "Scroll down for more.";
    cue.hidden = !wide && !tall;
  };
  new ResizeObserver(update).observe(box);
  update();
}

const addButton = (text, parent) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.textContent = text;
  parent.append(button);
  return button;
};

const all = addButton("Open all sections", document.querySelector("nav"));
all.addEventListener("click", () => {
  for (const section of document.querySelectorAll("details.section")) section.open = true;
});

for (const text of document.querySelectorAll("pre.copied")) {
  const bar = document.createElement("div");
  text.before(bar);
  const button = addButton("Copy", bar);
  button.ariaLabel = `Copy: ${text.ariaLabel}`;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch {
      getSelection().selectAllChildren(text);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  });
}

// A plot with the style sheet of plots, in light colours, at twice its size.
const PLOT_STYLE = document.querySelector("style.plots").textContent.split("@media")[0];

const drawPlot = async (plot) => {
  const copy = plot.cloneNode(true);
  const { width, height } = plot.viewBox.baseVal;
  const paper = document.createElementNS(plot.namespaceURI, "rect");
  const style = document.createElementNS(plot.namespaceURI, "style");
  paper.setAttribute("class", "paper");
  style.textContent = PLOT_STYLE;
  copy.removeAttribute("style");
  for (const element of [paper, copy]) {
    element.setAttribute("width", width);
    element.setAttribute("height", height);
  }
  copy.prepend(style, paper);
  const image = new Image(2 * width, 2 * height);
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
};

for (const figure of document.querySelectorAll("figure[data-name]")) {
  const button = addButton("PNG", figure.querySelector("figcaption"));
  button.ariaLabel = `${figure.querySelector("h2, h3").textContent} as PNG`;
  button.addEventListener("click", async () => {
    const link = document.createElement("a");
    link.download = `${figure.dataset.name}.png`;
    link.href = await drawPlot(figure.querySelector("svg"));
    link.click();
  });
}

// On paper nothing scrolls: a wide table becomes several with the same row headers.
const WIDEST = 7;

const takeColumns = (table, keep) => {
  const part = table.cloneNode(true);
  for (const row of part.rows) {
    for (const cell of Array.from(row.cells)) if (!keep.has(cell.cellIndex)) cell.dataset.removed = "";
    for (const cell of row.querySelectorAll("[data-removed]")) cell.remove();
  }
  return part;
};

const divide = (box) => {
  const table = box.querySelector("table");
  const [columns, row] = [table.tHead.rows[0].cells.length, table.tBodies[0].rows[0]];
  const heads = row ? row.querySelectorAll("th").length : 0;
  const count = Math.ceil((columns - heads) / WIDEST);
  if (count < 2) return;
  const width = Math.ceil((columns - heads) / count);
  for (let start = heads; start < columns; start += width) {
    const numbers = Array.from({ length: columns }, (_, at) => at);
    const part = box.cloneNode(false);
    part.classList.add("part");
    part.append(takeColumns(table, new Set(numbers.filter((at) => at < heads || (at >= start && at < start + width)))));
    box.before(part);
  }
  box.classList.add("divided");
};

const heads = []; // Chromium does not repeat a header row that has buttons
addEventListener("beforeprint", () => {
  for (const button of document.querySelectorAll("thead button")) {
    const text = document.createElement("span");
    text.append(...button.cloneNode(true).childNodes);
    button.replaceWith(text);
    heads.push([text, button]);
  }
  for (const section of document.querySelectorAll("details.printed:not([open])")) {
    section.open = section.dataset.closed = true;
  }
  for (const box of document.querySelectorAll(".box:has(table)")) divide(box);
});

addEventListener("afterprint", () => {
  for (const section of document.querySelectorAll("[data-closed]")) {
    section.open = false;
    delete section.dataset.closed;
  }
  for (const part of document.querySelectorAll(".part")) part.remove();
  for (const [text, button] of heads.splice(0)) text.replaceWith(button);
  for (const box of document.querySelectorAll(".divided")) box.classList.remove("divided");
});
