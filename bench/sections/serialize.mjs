/** What it costs to turn a payload into JSON text, beside what the engine and `safe-stable-stringify` need for it. */
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

const WAYS = ['JSON.stringify', 'runspan', 'safe-stable-stringify'];

/** In a process of its own: what the drivers have taught the compiler must not show. */
export async function serialize() {
  const figures = await runProgram('serialize-program.mjs', []);
  const cell = (number, unit = '') => (typeof number === 'number' ? `${number.toFixed(2)}${unit}` : '–');
  const lines = figures.map(({ name, bytes, us, toNative, toSafe }) => [
    name,
    String(bytes),
    ...WAYS.map((way) => cell(us[way])),
    cell(toNative, ' ×'),
    cell(toSafe, ' ×'),
  ]);
  const table = textTable(['one payload, µs', 'characters', ...WAYS, 'of JSON.stringify', 'of safe-stable'], lines);
  return {
    table: `${table}\nwith the limits and masks that hold by default; ratios within each round, medians`,
    figures,
  };
}
