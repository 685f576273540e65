/**
 * What a queued run holds on to: an agent whose messages grow from turn to turn, each turn a model call that is given all of
 * them. The runs wait in the queue; then they are sent, and the bytes of their bodies are counted where they arrive.
 */
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

export async function retained(sink) {
  await sink.ask('reset');
  const figures = await runProgram('retained-program.mjs', [], {
    env: { RUNSPAN_ENDPOINT: sink.url },
    execArgv: ['--expose-gc'],
  });
  const { bytes } = await sink.ask('count');
  const ratio = figures.retainedBytes / bytes;
  const row = [
    '50 turns',
    figures.runs,
    kib(figures.retainedBytes / figures.runs),
    kib(bytes / figures.runs),
    `${ratio.toFixed(2)} ×`,
  ];
  const table = textTable(
    ['an agent, per queued run', 'runs', 'retained KiB', 'encoded KiB', 'ratio'],
    [row.map(String)],
  );
  return { table, figures: { ...figures, encodedBytes: bytes, ratio } };
}

function kib(bytes) {
  return (bytes / 1_024).toFixed(1);
}
