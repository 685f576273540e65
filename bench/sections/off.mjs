/** Measures the time that runspan adds to calls that it does not record, in nanoseconds of processor time. */
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

/** Compares wrapped functions with bare functions. */
export function off() {
  return addedTimes('off-program.mjs', ['one call, ns', 'bare', 'with tracing off']);
}

/** Compares requests that are not model calls with a bare `fetch`. Nothing is sent. */
export function fetch() {
  return addedTimes('fetch-program.mjs', ['one request, ns', 'bare', 'with the recorder']);
}

async function addedTimes(program, columns) {
  const figures = await runProgram(program, []);
  const rows = figures.map(({ name, bareNs, extraNs }) => [name, bareNs.toFixed(1), `+${extraNs.toFixed(1)}`]);
  return { table: textTable(columns, rows), figures };
}
