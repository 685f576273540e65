/** A call of a wrapped function with tracing off, beside the bare function, in nanoseconds of processor time. */
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

export async function off() {
  const figures = await runProgram('off-program.mjs', []);
  const rows = figures.map(({ name, bareNs, extraNs }) => [name, bareNs.toFixed(1), `+${extraNs.toFixed(1)}`]);
  return { table: textTable(['one call, ns', 'bare', 'with tracing off'], rows), figures };
}
