/**
 * The committed results: the package versions and cells for each major Node version. A cell states when, where and with
 * which build it was measured. A figure has its median, spread, ratios and difference, with four significant digits.
 */
const DIGITS = 4;
const COMPARED = [
  'cpuUsPerRun',
  'runsPerSecond',
  'turnP50Us',
  'turnP99Us',
  'loopDelayP99Ms',
  'loopDelayMaxMs',
  'peakRssMiB',
  'receiverCpuUsPerRun',
];
const FIGURES = [...COMPARED, 'runs', 'bytesPerRun', 'mbPerSecond', 'indexedRunsPerSecond', 'indexedCpuUsPerRun'];
const COMPARISONS = ['toLimit', 'toOtlp', 'toTraceable', 'overUntraced'];

/** Groups measured cells by Node, in the given order of names. Each cell replaces the committed cell with its name. */
export function compactResults(cells, order, committed = {}) {
  const nodes = { ...committed };
  for (const major of new Set(cells.map(majorOf))) {
    const own = cells.filter((cell) => majorOf(cell) === major);
    const compact = [...own.map(compactCell), ...(committed[major]?.cells ?? [])];
    const kept = order.flatMap((name) => compact.find((cell) => cell.name === name) ?? []);
    const { runspan: _, ...versions } = own.at(-1).versions;
    if (kept.length > 0) nodes[major] = { versions, cells: kept };
  }
  return nodes;
}

/** The results as text with one line for each row, for readable diffs. */
export function resultsText(nodes) {
  const row = (value) => `          ${JSON.stringify(value)}`;
  const cellText = ({ drivers, figures, ...head }) => {
    const [key, rows] = drivers === undefined ? ['figures', figures] : ['drivers', drivers];
    return `      {\n        "cell": ${JSON.stringify(head)},\n        "${key}": [\n${rows.map(row).join(',\n')}\n        ]\n      }`;
  };
  const nodeText = ([major, { cells, ...head }]) =>
    `  "${major}": {\n    "head": ${JSON.stringify(head)},\n    "cells": [\n${cells.map(cellText).join(',\n')}\n    ]\n  }`;
  return `{\n${Object.entries(nodes).map(nodeText).join(',\n')}\n}\n`;
}

/** Parses the text that `resultsText` returns. */
export function readResults(text) {
  return Object.fromEntries(
    Object.entries(JSON.parse(text)).map(([major, { head, cells }]) => [
      major,
      { ...head, cells: cells.map(({ cell, ...rows }) => ({ ...cell, ...rows })) },
    ]),
  );
}

function majorOf({ machine }) {
  return machine.node.slice(1).split('.')[0];
}

function compactCell({ name, title, rounds, startedAt, machine, versions, drivers, figures }) {
  const { node, cores, cpu, platform } = machine;
  const measured = { on: startedAt.slice(0, 10), runspan: versions.runspan, node, cores, cpu, platform };
  return {
    name,
    title,
    rounds,
    measured,
    ...(figures && { figures }),
    ...(drivers && { drivers: drivers.map(compactRow) }),
  };
}

function compactRow({ name, complaint, ...figures }) {
  if (complaint !== undefined) return { name, complaint };
  const measured = FIGURES.filter((figure) => figures[figure] !== undefined);
  return { name, ...Object.fromEntries(measured.map((figure) => [figure, compactFigure(figure, figures[figure])])) };
}

function compactFigure(figure, { median, min, max, ...comparisons }) {
  return {
    median: digits(median),
    ...(min !== max && { min: digits(min), max: digits(max) }),
    ...(COMPARED.includes(figure) && Object.fromEntries(COMPARISONS.map((key) => [key, digits(comparisons[key])]))),
  };
}

/** Undefined for a value that JSON cannot represent as a number. */
function digits(number) {
  return Number.isFinite(number) ? Number(number.toPrecision(DIGITS)) : undefined;
}
