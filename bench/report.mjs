import { ratioBetween } from './summary.mjs';

/** Title, figure, decimals, and whether a ratio to the limit stands beside it. */
const COST = [
  ['runs', 'runs', 0, false],
  ['CPU µs/run', 'cpuUsPerRun', 2, true],
  ['runs/s', 'runsPerSecond', 0, true],
  ['peak RSS MiB', 'peakRssMiB', 0, true],
  ['bytes/run', 'bytesPerRun', 0, false],
  ['requests', 'requests', 0, false],
];
const DELAY = [
  ['turn p50 µs', 'turnP50Us', 1, true],
  ['turn p99 µs', 'turnP99Us', 1, true],
  ['turn p99.9 µs', 'turnP999Us', 1, true],
  ['loop delay p99 ms', 'loopDelayP99Ms', 2, true],
  ['gc % of time', 'gcPercent', 1, false],
  ['retained MiB', 'retainedMiB', 1, false],
];

/** In what the others depart from what they do by themselves. */
export const METHOD_NOTES =
  'By default OpenTelemetry and langfuse have room for 2 048 spans in their queues and braintrust for 15 000 rows, and drop what ' +
  'is beyond, which happens at full speed: here each has room for 1 000 000.';

/** The tables as aligned text. */
export function tables(rows) {
  const spread = { title: 'spread', cell: ({ cpuUsPerRun: { min, max } }) => `${min.toFixed(2)}–${max.toFixed(2)}` };
  const net = {
    title: 'net of untraced',
    cell: ({ cpuUsPerRun: { overUntraced } }) => overUntraced?.toFixed(2) ?? '–',
  };
  const [runs, cpu, cpuRatio, ...others] = COST.flatMap(columnsOf);
  return [table(rows, [runs, cpu, cpuRatio, spread, net, ...others]), table(rows, DELAY.flatMap(columnsOf))].join(
    '\n\n',
  );
}

/** The processor beside what OpenTelemetry has for the same spans, a line for each encoding where both rows count. */
export function besideOtlp(rows, rounds) {
  const hasRow = (driver) => rows.some(({ name, complaint }) => name === driver && complaint === undefined);
  const lines = ['otlp-json', 'otlp-protobuf'].flatMap((other) => {
    if (!hasRow('processor') || !hasRow(other)) return [];
    const ratio = (figure) => ratioBetween('processor', other, rounds, figure);
    const [cpu, memory, delay] = ['cpuUsPerRun', 'peakRssMiB', 'loopDelayP99Ms'].map((figure) =>
      ratio(figure).toFixed(2),
    );
    return [
      `processor: ${cpu} × the CPU per run of ${other}, ${memory} × its peak memory, ${delay} × its loop delay p99`,
    ];
  });
  return lines.join('\n');
}

function columnsOf([title, figure, decimals, hasRatio]) {
  const value = { title, cell: (row) => row[figure].median.toFixed(decimals) };
  const ratio = {
    title: '× limit',
    cell: (row) => (row[figure].toLimit === undefined ? '–' : `${row[figure].toLimit.toFixed(2)} ×`),
  };
  return hasRatio ? [value, ratio] : [value];
}

/** A row that does not count says why, across the columns. */
function table(rows, columns) {
  const cells = rows.map((row) => (row.complaint === undefined ? columns.map(({ cell }) => cell(row)) : []));
  const widths = columns.map(({ title }, at) => Math.max(title.length, ...cells.map((line) => line[at]?.length ?? 0)));
  const nameWidth = Math.max(...rows.map(({ name }) => name.length));
  const head = columns.map(({ title }, at) => title.padStart(widths[at])).join('  ');
  const lines = rows.map(({ name, complaint }, at) => {
    const text =
      complaint === undefined
        ? cells[at].map((cell, column) => cell.padStart(widths[column])).join('  ')
        : `invalid: ${complaint}`;
    return `${name.padEnd(nameWidth)}  ${text}`;
  });
  return [`${' '.repeat(nameWidth)}  ${head}`, ...lines].join('\n');
}
