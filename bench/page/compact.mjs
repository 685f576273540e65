/**
 * What is committed of the results: of each figure the median and the spread, to four digits that count, with the ratios and
 * differences that were made within the rounds.
 */
const DIGITS = 4;

/** Those that are compared with the limit and with the untraced program. */
const COMPARED = ['cpuUsPerRun', 'turnP50Us', 'turnP99Us', 'loopDelayP99Ms', 'peakRssMiB'];
const SPREAD = [...COMPARED, 'systemCpuUsPerRun', 'turnP999Us', 'runsPerSecond', 'retainedMiB', 'gcPercent'];
const FIGURES = [...SPREAD, 'runs', 'bytesPerRun', 'requests'];

/** Cells as they were measured, in the order that is given, become what the page is made of. */
export function compactResults(cells, order) {
  const known = order.flatMap((name) => cells.filter((cell) => cell.name === name));
  const [first] = known;
  if (first === undefined) throw new Error('no cell has been measured: npm run bench:full does it');
  for (const { name, machine, versions } of known) {
    if (
      machine.cpu !== first.machine.cpu ||
      machine.node !== first.machine.node ||
      !sameJson(versions, first.versions)
    ) {
      throw new Error(
        `${name} and ${first.name} were measured on different machines or versions: run one of them again`,
      );
    }
  }
  const { cpu, cores, platform, node, v8 } = first.machine;
  return {
    measuredOn: known.map(({ startedAt }) => startedAt.slice(0, 10)).sort()[0],
    share: Math.min(...known.map(({ share }) => share)),
    machine: { cpu, cores, platform, node, v8 },
    versions: first.versions,
    cells: known.map(({ name, group, title, rounds, drivers, figures }) => ({
      name,
      group,
      title,
      rounds,
      ...(figures && { figures }),
      ...(drivers && { drivers: drivers.map(compactRow) }),
    })),
  };
}

/** The results as text with a line for each driver, so that a change shows where it is. */
export function resultsText(results) {
  const row = (value) => `      ${JSON.stringify(value)}`;
  const cells = results.cells.map(({ drivers = [], figures = [], ...head }) => {
    const [key, rows] = drivers.length > 0 ? ['drivers', drivers] : ['figures', figures];
    return `    {\n      "cell": ${JSON.stringify(head)},\n      "${key}": [\n${rows.map(row).join(',\n')}\n      ]\n    }`;
  });
  const { cells: _, ...head } = results;
  return `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "cells": [\n${cells.join(',\n')}\n  ]\n}\n`;
}

/** What `resultsText` has written. */
export function readResults(text) {
  const { cells, ...head } = JSON.parse(text);
  return { ...head, cells: cells.map(({ cell, ...rows }) => ({ ...cell, ...rows })) };
}

function compactRow({ name, complaint, ...figures }) {
  if (complaint !== undefined) return { name, complaint };
  return { name, ...Object.fromEntries(FIGURES.map((figure) => [figure, compactFigure(figure, figures[figure])])) };
}

function compactFigure(figure, { median, min, max, toLimit, overUntraced }) {
  return {
    median: digits(median),
    ...(SPREAD.includes(figure) && min !== max && { min: digits(min), max: digits(max) }),
    ...(COMPARED.includes(figure) && { toLimit: digits(toLimit), overUntraced: digits(overUntraced) }),
  };
}

/** Undefined, and what is no number in JSON, is left out. */
function digits(number) {
  return Number.isFinite(number) ? Number(number.toPrecision(DIGITS)) : undefined;
}

function sameJson(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
