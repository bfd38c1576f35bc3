// Lets a reader sort a table by a click on a head and filter its rows by a word; without it the tables are whole.

const key = (cell) => {
  const text = cell.textContent.trim();
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
};

function sort(table, column, falling) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row.cells[column]) }));
  const order = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "string" ? 1 : -1);
  rows.sort((a, b) => (falling ? -1 : 1) * order(a.key, b.key) || a.place - b.place);
  body.append(...rows.map(({ row }) => row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (head.className === "bar" || !head.textContent.trim()) return;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      sort(table, column, falling);
    });
  });
}

function makeSearchable(table) {
  const label = document.createElement("label");
  label.className = "filter";
  label.append("Find: ", Object.assign(document.createElement("input"), { type: "search" }));
  table.before(label);
  label.lastChild.addEventListener("input", () => {
    const wanted = label.lastChild.value.trim().toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length > 1) makeSortable(table);
  if (table.tBodies[0].rows.length > 12) makeSearchable(table);
}

addEventListener("beforeprint", () => document.querySelectorAll(".report details").forEach((part) => (part.open = true)));
