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
  input.placeholder = "name of a model";
  label.append("Filter ", input);
  pairs.querySelector(".tools").prepend(label);
  input.addEventListener("input", () => {
    const query = input.value.trim().toLocaleLowerCase();
    for (const row of pairs.querySelector("tbody").rows) {
      const names = `${row.cells[0].textContent}\n${row.cells[1].textContent}`.toLocaleLowerCase();
      row.hidden = !names.includes(query);
    }
  });
}

addEventListener("beforeprint", () => {
  for (const section of document.querySelectorAll("details")) section.open = true;
});
