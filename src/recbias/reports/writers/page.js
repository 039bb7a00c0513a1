"use strict";
// The page is complete without this script, which sorts tables, filters comparisons and unfolds everything for print.

const numberOf = (cell) => (cell.dataset.value === undefined ? NaN : Number(cell.dataset.value));

// Undefined values come last in both orders.
const compareRows = (a, b, column, sign) => {
  const [x, y] = [a.cells[column], b.cells[column]];
  const [p, q] = [numberOf(x), numberOf(y)];
  if (x.dataset.value === undefined && y.dataset.value === undefined) {
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
  rows.sort((a, b) => compareRows(a, b, column, order === "ascending" ? 1 : -1));
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

for (const pairs of document.querySelectorAll(".pairs")) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "metric, model, group or test";
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

// A sentence below each table that ends beyond its box.
for (const box of document.querySelectorAll(".box:has(table)")) {
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

addEventListener("beforeprint", () => {
  for (const section of document.querySelectorAll("details")) section.open = true;
});
