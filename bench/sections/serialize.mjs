/** Compares serializing a payload with default limits and masks to `JSON.stringify`. */
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

export async function serialize() {
  const figures = await runProgram('serialize-program.mjs', []);
  const rows = figures.map(({ name, characters, nativeUs, ownUs, toNative }) => [
    name,
    String(characters),
    nativeUs.toFixed(2),
    ownUs.toFixed(2),
    `${toNative.toFixed(2)} ×`,
  ]);
  return { table: textTable(['one payload, µs', 'characters', 'JSON.stringify', 'runspan', 'ratio'], rows), figures };
}
