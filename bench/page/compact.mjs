/**
 * What is committed of the results: of each figure the median and the spread, to four digits that count, with the ratios and
 * differences that were made within the rounds.
 */
const DIGITS = 4;

/** Those that are compared with the limit and with the untraced program. */
const COMPARED = ['cpuUsPerRun', 'turnP50Us', 'turnP99Us', 'loopDelayP99Ms', 'peakRssMiB'];
const SPREAD = [...COMPARED, 'systemCpuUsPerRun', 'turnP999Us', 'runsPerSecond', 'retainedMiB', 'gcPercent'];
const FIGURES = [...SPREAD, 'runs', 'bytesPerRun', 'requests'];

/**
 * Cells as they were measured, in the order that is given, become what the page is made of. The Node that most were measured
 * on has the page; of others there is the first cell alone.
 */
export function compactResults(cells, order) {
  const [own, ...nodes] = byNode(cells, order);
  if (own === undefined) throw new Error('no cell has been measured: npm run bench:full does it');
  const others = nodes.flatMap((ofNode) => ofNode.filter(({ name }) => name === order[0]));
  refuseMixed([...own, ...others]);
  const [{ machine, versions }] = own;
  const { cpu, cores, platform, node, v8 } = machine;
  return {
    measuredOn: own.map(({ startedAt }) => startedAt.slice(0, 10)).sort()[0],
    share: Math.min(...[...own, ...others].map(({ share }) => share)),
    machine: { cpu, cores, platform, node, v8 },
    versions,
    cells: [
      ...own.map(({ group, ...cell }) => compactCell(cell, group)),
      ...others.map((cell) => {
        const name = `${cell.name}-on-${cell.machine.node}`;
        return compactCell({ ...cell, name, title: `${cell.title}, on Node ${cell.machine.node}` }, 'other-node');
      }),
    ],
  };
}

/** In the order that is given, the Node with most cells first. */
function byNode(cells, order) {
  const groups = new Map();
  for (const cell of cells) groups.set(cell.machine.node, [...(groups.get(cell.machine.node) ?? []), cell]);
  const sorted = (group) => order.flatMap((name) => group.filter((cell) => cell.name === name));
  return [...groups.values()].map(sorted).sort((one, other) => other.length - one.length);
}

function refuseMixed([first, ...others]) {
  for (const { name, machine, versions } of others) {
    if (machine.cpu !== first.machine.cpu || JSON.stringify(versions) !== JSON.stringify(first.versions)) {
      throw new Error(
        `${name} (Node ${machine.node}) and ${first.name} (Node ${first.machine.node}) were measured on different machines or versions: run one of them again`,
      );
    }
  }
}

function compactCell({ name, title, rounds, drivers, figures }, group) {
  const rows = drivers && { drivers: drivers.map(compactRow) };
  return { name, group, title, rounds, ...(figures && { figures }), ...rows };
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
