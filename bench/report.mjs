import { textTable } from './text-table.mjs';

/** Title, figure, decimals, and the ratios next to it. */
const COST = [
  ['runs', 'runs', 0],
  ['CPU µs/run', 'cpuUsPerRun', 2, 'toLimit', 'toOtlp'],
  ['runs/s', 'runsPerSecond', 0],
  ['peak MiB', 'peakRssMiB', 0, 'toOtlp'],
  ['bytes/run', 'bytesPerRun', 0],
  ['requests', 'requests', 0],
];
const DELAY = [
  ['turn p50 µs', 'turnP50Us', 1, 'toLimit'],
  ['p99', 'turnP99Us', 1, 'toLimit'],
  ['loop p99 ms', 'loopDelayP99Ms', 2, 'toLimit'],
  ['longest', 'loopDelayMaxMs', 1],
  ['gc %', 'gcPercent', 1],
  ['retained MiB', 'retainedMiB', 1],
];
export const INGEST_COLUMNS = [
  ['runs', 'runs', 0],
  ['runs/s', 'runsPerSecond', 0, 'toTraceable'],
  ['MB/s', 'mbPerSecond', 2],
  ['CPU µs/run', 'cpuUsPerRun', 1],
  ['of the receiver', 'receiverCpuUsPerRun', 1],
  ['runs/s until indexed', 'indexedRunsPerSecond', 0],
  ['CPU until indexed', 'indexedCpuUsPerRun', 1],
];
const RATIO_TITLES = { toLimit: '× limit', toOtlp: '× OTLP/JSON', toTraceable: '× traceable' };

/** Formats a cell as aligned text: cost, then delays. The reasons why rows do not count are below the tables. */
export function tables(rows, columnsOfTables = [COST, DELAY]) {
  const valid = rows.filter(({ complaint }) => complaint === undefined);
  const invalid = rows.filter(({ complaint }) => complaint !== undefined);
  return [
    ...columnsOfTables.map((columns) => table(valid, columns)),
    ...invalid.map(({ name, complaint }) => `${name}: invalid: ${complaint}`),
  ].join('\n\n');
}

function table(rows, columns) {
  const titles = columns.flatMap(([title, , , ...ratios]) => [title, ...ratios.map((ratio) => RATIO_TITLES[ratio])]);
  const lines = rows.map((row) => [
    row.name,
    ...columns.flatMap(([, figure, decimals, ...ratios]) => [
      row[figure]?.median.toFixed(decimals) ?? '–',
      ...ratios.map((ratio) => (row[figure][ratio] === undefined ? '–' : `${row[figure][ratio].toFixed(2)} ×`)),
    ]),
  ]);
  return textTable(['', ...titles], lines);
}
