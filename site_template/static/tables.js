// Tables: sorting by a click on a heading, filtering by text. Without this script they read as they stand.
"use strict";
(() => {
  const MIN_ROWS_TO_FILTER = 8;

  function key(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.querySelector("time")?.dateTime ?? cell.textContent.trim();
    const number = Number(text.replaceAll(",", ""));
    return text !== "" && Number.isFinite(number) ? number : text.toLowerCase();
  }

  function compare(one, other) {
    if (typeof one === typeof other) {
      return one < other ? -1 : one > other ? 1 : 0;
    }
    return typeof one === "number" ? 1 : -1;
  }

  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [key(row, column), row]);
    keyed.sort(([one], [other]) => direction * compare(one, other));
    body.append(...keyed.map(([, row]) => row));
  }

  function makeSortable(table) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const isDown = heading.getAttribute("aria-sort") === "descending";
        headings.forEach((each) => each.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", isDown ? "ascending" : "descending");
        sort(table, column, isDown ? 1 : -1);
      });
    });
  }

  function makeFilterable(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < MIN_ROWS_TO_FILTER) {
      return;
    }
    const label = document.createElement("label");
    label.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    const count = document.createElement("span");
    count.className = "quiet";
    count.setAttribute("role", "status");
    label.append("Filter ", input, " ", count);
    table.closest(".table-scroll").before(label);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, index) => {
        row.hidden = !wanted.every((word) => texts[index].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
    });
  }

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    makeFilterable(table);
    makeSortable(table);
  }
})();
