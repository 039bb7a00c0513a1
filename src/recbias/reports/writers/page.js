"use strict";
// The page is whole without this: it sorts tables, filters comparisons and opens everything for print.

const figure = (cell) => (cell.dataset.value === undefined ? NaN : Number(cell.dataset.value));

// Undefined figures come last whichever way a column is sorted.
const compared = (a, b, column, sign) => {
  const [x, y] = [a.cells[column], b.cells[column]];
  const [p, q] = [figure(x), figure(y)];
  if (x.dataset.value === undefined && y.dataset.value === undefined) {
    return sign * x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
  }
  if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) - Number.isNaN(q);
  return sign * (p - q);
};

const sort = (table, head) => {
  const column = head.cellIndex;
  const first = head.dataset.first || "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? other : first;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  rows.sort((a, b) => compared(a, b, column, order === "ascending" ? 1 : -1));
  body.append(...rows);
  for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
};

for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, head));
  }
}

for (const part of document.querySelectorAll(".pairs")) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "a model's name";
  label.append("Show ", input);
  part.querySelector(".tools").prepend(label);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLocaleLowerCase();
    for (const row of part.querySelector("tbody").rows) {
      const said = `${row.cells[0].textContent}\n${row.cells[1].textContent}`.toLocaleLowerCase();
      row.hidden = !said.includes(wanted);
    }
  });
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
