/** Measures the longest delay of the event loop in the first second of a program with 100 turns a second. */
import { median } from '../statistics.mjs';
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

const STARTS = 5;

/** Interleaves the starts, so that other load on the machine affects all equally. */
export async function firstSend({ sink, beside }) {
  const longestMs = { untraced: [], traceable: [], ...(beside && { beside: [] }) };
  for (let start = 0; start < STARTS; start++) {
    for (const [name, delays] of Object.entries(longestMs)) {
      const env = { RUNSPAN_ENDPOINT: sink.url, ...(name === 'beside' && { BENCH_BESIDE: beside }) };
      delays.push((await runProgram('first-send-program.mjs', [name], env)).longestMs);
    }
  }
  const figures = Object.entries(longestMs).map(([name, delays]) => ({ name, longestMs: median(delays) }));
  const rows = figures.map((figure) => [figure.name, figure.longestMs.toFixed(1)]);
  return { table: `${textTable(['at the first send, ms', 'longest'], rows)}\n${STARTS} starts each, medians`, figures };
}
