/** The pictures of the page, by the name of their file. One whose cells have not been measured is left out. */
import { dotPlot } from './dot-plot.mjs';
import { lineChart } from './line-chart.mjs';
import { labelOf } from './palette.mjs';
import { cellsOf, figureOf } from './results.mjs';

const RATES = [1_000, 5_000, 10_000, 20_000];
const COUNTS = [1_000, 10_000, 100_000, 1_000_000];
const IN_FLIGHT = [1, 4, 16, 64];

export function chartsOf(results) {
  const charts = {
    'cpu.svg': byDriver(results, 'agent', 'cpuUsPerRun', 'CPU of a run, 3-run turns of 8 KB', 'µs', true),
    'turn.svg': turnTimes(results),
    'loop-delay.svg': byDriver(results, 'agent', 'loopDelayP99Ms', 'Event-loop delay, 99th percentile', 'ms', true),
    'memory.svg': byDriver(results, 'agent', 'peakRssMiB', 'Peak memory of the process', 'MiB'),
    'workloads.svg': ratiosOf(results, 'workloads', 'CPU of a run by kind of work'),
    'service.svg': ratiosOf(results, 'service', 'CPU of a run by what the service does'),
    'open-loop.svg': overRates(results),
    'growth.svg': overCounts(results),
    'in-flight.svg': overInFlight(results),
    'size.svg': sizes(results, 'installedMB', 'Installed, with all that comes along', 'MB'),
    'start.svg': sizes(results, 'importMs', 'What the import adds to a start', 'ms'),
  };
  return Object.fromEntries(Object.entries(charts).filter(([, svg]) => svg !== undefined));
}

function byDriver(results, cell, figure, title, unit, isLog = false) {
  const rows = driversOf(results, cell).map((row) => ({ label: labelOf(row.name), dots: [dotOf(row, figure)] }));
  return rows.length === 0 ? undefined : dotPlot({ title, unit, rows, isLog });
}

/** Three dots for each driver: p50, p99 and p99.9, from the left. */
function turnTimes(results) {
  const rows = driversOf(results, 'agent').map((row) => ({
    label: labelOf(row.name),
    dots: ['turnP50Us', 'turnP99Us', 'turnP999Us'].map((figure) => dotOf(row, figure)),
  }));
  const title = 'Time of a turn, 3-run turns of 8 KB: p50, p99 and p99.9, from the left';
  return rows.length === 0 ? undefined : dotPlot({ title, unit: 'µs', rows, isLog: true });
}

/** Cells as lines, drivers as dots: by what factor each is the limit. */
function ratiosOf(results, group, title) {
  const rows = cellsOf(results, group).flatMap((cell) => {
    const dots = cell.drivers
      .filter(({ name, cpuUsPerRun }) => name !== 'untraced' && cpuUsPerRun?.toLimit !== undefined)
      .map(({ name, cpuUsPerRun }) => ({ series: name, value: cpuUsPerRun.toLimit }));
    return dots.length === 0 ? [] : [{ label: cell.name, dots }];
  });
  return rows.length === 0 ? undefined : dotPlot({ title, unit: '× the limit', rows, isLog: true });
}

function overRates(results) {
  return overCells(results, RATES, (rate) => `open-${rate}`, ['turnP99Us', 'overUntraced'], {
    title: 'Added to the 99th percentile of turns that are due at a rate',
    unit: 'µs over the untraced program, from when the turn was due',
    stepTitle: 'runs a second',
  });
}

function overCounts(results) {
  return overCells(results, COUNTS, (runs) => `runs-${runs}`, ['cpuUsPerRun', 'median'], {
    title: 'CPU of a run, by how many there are',
    unit: 'µs',
    stepTitle: 'runs',
  });
}

function overInFlight(results) {
  return overCells(results, IN_FLIGHT, (requests) => `in-flight-${requests}`, ['runsPerSecond', 'median'], {
    title: 'Delivered to a service that answers after 20 ms',
    unit: 'runs a second',
    stepTitle: 'requests in flight',
  });
}

function overCells(results, steps, cellOf, [figure, kind], texts) {
  const names = [...new Set(steps.flatMap((step) => driversOf(results, cellOf(step)).map(({ name }) => name)))];
  const series = names
    .filter((name) => name !== 'untraced')
    .map((name) => ({ name, values: steps.map((step) => figureOf(results, cellOf(step), name, figure, kind)) }));
  return series.length === 0 ? undefined : lineChart({ ...texts, steps, series, isLog: true });
}

function sizes(results, figure, title, unit) {
  const [cell] = cellsOf(results, 'size');
  if (cell === undefined) return undefined;
  const rows = cell.figures.map((row) => ({ label: row.name, dots: [{ series: row.name, value: row[figure] }] }));
  return dotPlot({ title, unit, rows });
}

function driversOf(results, name) {
  const cell = results.cells.find((one) => one.name === name);
  return cell?.drivers.filter(({ complaint }) => complaint === undefined) ?? [];
}

function dotOf({ name, ...figures }, figure) {
  const { median, min, max } = figures[figure];
  return { series: name, value: median, min, max };
}
