/**
 * Measures a conversation of 200 turns that sends its whole history with each model call: the bytes that the exporter
 * holds while there is no service, and the bytes on the wire to a service that accepts an encoding.
 */
import { otherHost } from '../drivers.mjs';
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

const BUILDS = ['runspan', 'beside'];
const TITLES = ['200 turns, MB', 'texts', 'held', 'in memory', 'resident', 'sent, gzip', 'sent, zstd'];

export async function history({ sink, beside }) {
  const figures = [];
  for (const name of BUILDS.slice(0, beside === undefined ? 1 : 2)) {
    const run = (mode, behaviour) =>
      converse(mode, behaviour, { sink, beside: name === 'beside' ? beside : undefined });
    const { figures: held } = await run('held', { isDown: true });
    const [gzip, zstd] = [await run('sent', { encoding: 'gzip' }), await run('sent', { encoding: 'zstd' })];
    figures.push({ name, ...held, gzipBytes: gzip.wireBytes, zstdBytes: zstd.wireBytes });
  }
  const rows = figures.map(({ name, ...bytes }) => [name, ...Object.values(bytes).map((count) => megabytes(count))]);
  return { table: textTable(TITLES, rows), figures };
}

async function converse(mode, behaviour, { sink, beside }) {
  await sink.ask('reset');
  await sink.ask('behave', behaviour);
  const env = {
    RUNSPAN_ENDPOINT: otherHost(sink.url),
    RUNSPAN_LOG: 'silent',
    ...(beside && { BENCH_BESIDE: beside }),
  };
  const { figures, runs, dropped } = await runProgram('history-program.mjs', [mode], env);
  const { bytes: wireBytes, complete } = await sink.ask('count');
  await sink.ask('behave', {});
  const lost = mode === 'sent' ? runs - complete : dropped;
  if (lost !== 0) throw new Error(`${lost} of ${runs} runs are lost`);
  return { figures, wireBytes };
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}
