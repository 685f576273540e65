/** Looks things up in compact results. */

export function cellsOf(results, group) {
  return results.cells.filter((cell) => cell.group === group);
}

/** One figure of one driver in one cell: its median, ratio or difference; undefined where there is none, or none that counts. */
export function figureOf(results, cell, driver, figure, kind = 'median') {
  const row = results.cells.find(({ name }) => name === cell)?.drivers.find(({ name }) => name === driver);
  return row?.[figure]?.[kind];
}

/** Where the row of a driver stands on the page. */
export function anchorOf(cell, driver) {
  return `${cell}-${driver}`.toLowerCase();
}
