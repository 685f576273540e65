/**
 * Measures a conversation of 200 turns that sends its whole history with each model call: the bytes that the exporter
 * holds while there is no service, and the bytes on the wire to a service that accepts an encoding.
 */
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

const BUILDS = ['runspan', 'beside'];

export async function history({ sink, beside }) {
  const figures = [];
  for (const name of BUILDS.slice(0, beside === undefined ? 1 : 2)) {
    const run = (mode, behaviour) =>
      converse(mode, behaviour, { sink, beside: name === 'beside' ? beside : undefined });
    const { textBytes, heldBytes, rssBytes } = await run('held', { isDown: true });
    const [gzip, zstd] = [await run('sent', { encoding: 'gzip' }), await run('sent', { encoding: 'zstd' })];
    figures.push({ name, textBytes, heldBytes, rssBytes, gzipBytes: gzip.wireBytes, zstdBytes: zstd.wireBytes });
  }
  const rows = figures.map(({ name, ...bytes }) => [name, ...Object.values(bytes).map((count) => megabytes(count))]);
  return { table: textTable(['200 turns, MB', 'texts', 'held', 'memory', 'sent, gzip', 'sent, zstd'], rows), figures };
}

async function converse(mode, behaviour, { sink, beside }) {
  await sink.ask('reset');
  await sink.ask('behave', behaviour);
  const env = {
    RUNSPAN_ENDPOINT: sink.url,
    RUNSPAN_COMPRESS: 'true',
    RUNSPAN_LOG: 'silent',
    ...(beside && { BENCH_BESIDE: beside }),
  };
  const { textBytes, heldBytes, rssBytes, runs } = await runProgram('history-program.mjs', [mode], env);
  const { bytes: wireBytes, complete } = await sink.ask('count');
  await sink.ask('behave', {});
  if (mode === 'sent' && complete !== runs) throw new Error(`${runs} runs created, ${complete} arrived whole`);
  return { textBytes, heldBytes, rssBytes, wireBytes };
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}
