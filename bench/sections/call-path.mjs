/**
 * What one call costs where it is made, apart from delivery: a wrapped function beside the bare one, with tracing off, in
 * traces that sampling leaves out, and traced. Each state has a process of its own, since entering an AsyncLocalStorage
 * once makes later awaits of the process dearer on Node 20.
 */
import { median } from '../statistics.mjs';
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

const STATES = ['off', 'sampled out', 'traced'];

export async function callPath() {
  const measured = {};
  for (const state of STATES) measured[state] = await runProgram('call-path-program.mjs', [state]);
  const shapes = Object.keys(measured.off);
  const rows = shapes.map((shape) => {
    const bareNs = median(STATES.map((state) => measured[state][shape].bareNs));
    return [shape, bareNs.toFixed(0), ...STATES.map((state) => `+${measured[state][shape].extraNs.toFixed(0)}`)];
  });
  const table = textTable(['one call, ns', 'bare', ...STATES], rows);
  return { table: `${table}\nover the bare function, medians; traced runs are taken and forgotten`, figures: measured };
}
