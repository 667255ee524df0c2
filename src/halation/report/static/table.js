// The table of measures: sort by any column, filter by any word.

{
  const table = byId("measures-table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => row.cells[column]?.dataset.value ?? "";

  const sortBy = (column, direction) => {
    const number = rows.every((row) => value(row, column) === "" || !Number.isNaN(Number(value(row, column))));
    const key = number ? (row) => Number(value(row, column) || NaN) : (row) => value(row, column);
    const order = rows.map((row, position) => [key(row), position, row]);
    order.sort(([a, i], [b, j]) => {
      const compared = number ? (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b) : a.localeCompare(b, "en", { numeric: true });
      return direction * compared || i - j;
    });
    body.append(...order.map(([, , row]) => row));
    heads.forEach((head, k) => head.hasAttribute("aria-sort") && head.setAttribute("aria-sort", k !== column ? "none" : direction > 0 ? "ascending" : "descending"));
  };

  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const words = column < 2; // names start from A, numbers from the biggest
      const now = head.getAttribute("aria-sort");
      sortBy(column, now === "none" ? (words ? 1 : -1) : now === "ascending" ? -1 : 1);
    });
  });

  byId("measures-filter").addEventListener("input", (event) => {
    const wanted = wordsOf(event.target.value);
    let shown = 0;
    for (const row of rows) {
      const text = joined(`${value(row, 0)} ${value(row, 1)}`);
      row.hidden = !wanted.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    byId("measures-count").textContent = wanted.length ? `${shown} of ${rows.length} measures` : "";
  });
}
