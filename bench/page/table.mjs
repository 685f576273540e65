import { labelOf } from './palette.mjs';
import { anchorOf } from './results.mjs';
import { shown } from './scale.mjs';

const COLUMNS = [
  ['runs', ({ runs }) => shown(runs.median)],
  ['CPU µs/run', ({ cpuUsPerRun }) => withSpread(cpuUsPerRun)],
  ['× limit', ({ cpuUsPerRun: { toLimit } }) => (toLimit === undefined ? '–' : `${shown(toLimit)} ×`)],
  ['in the system', ({ systemCpuUsPerRun }) => shown(systemCpuUsPerRun.median)],
  ['runs/s', ({ runsPerSecond }) => shown(runsPerSecond.median)],
  ['turn p50 µs', ({ turnP50Us }) => shown(turnP50Us.median)],
  ['p99', ({ turnP99Us }) => shown(turnP99Us.median)],
  ['p99.9', ({ turnP999Us }) => shown(turnP999Us.median)],
  ['loop p99 ms', ({ loopDelayP99Ms }) => shown(loopDelayP99Ms.median)],
  ['peak MiB', ({ peakRssMiB }) => shown(peakRssMiB.median)],
  ['retained', ({ retainedMiB }) => shown(retainedMiB.median)],
  ['gc %', ({ gcPercent }) => shown(gcPercent.median)],
  ['requests', ({ requests }) => shown(requests.median)],
  ['bytes/run', ({ bytesPerRun }) => shown(bytesPerRun.median)],
];

/** A cell as a table, each row with an anchor that claims link to. One that does not count says why. */
export function cellTable({ name: cell, drivers }) {
  const head = ['', ...COLUMNS.map(([title]) => title)];
  const rows = drivers.map(({ name, complaint, ...figures }) => {
    const first = `<a id="${anchorOf(cell, name)}"></a>${labelOf(name)}`;
    if (complaint !== undefined) return [first, `invalid: ${complaint}`, ...COLUMNS.slice(1).map(() => '')];
    return [first, ...COLUMNS.map(([, textOf]) => textOf(figures))];
  });
  return markdownTable(head, rows);
}

export function sizeTable({ name: cell, figures }) {
  const head = ['', 'import ms', 'installed MB', 'packages'];
  const rows = figures.map(({ name, importMs, installedMB, packages }) => [
    `<a id="${anchorOf(cell, name)}"></a>${name}`,
    ...[importMs, installedMB, packages].map(shown),
  ]);
  return markdownTable(head, rows);
}

/** The first column to the left, the others to the right. */
function markdownTable(head, rows) {
  const rule = head.map((_, at) => (at === 0 ? '---' : '--:'));
  return [head, rule, ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}

function withSpread({ median, min, max }) {
  return min === undefined ? shown(median) : `${shown(median)} (${shown(min)}–${shown(max)})`;
}
