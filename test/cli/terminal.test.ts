import { expect, it } from 'vitest';
import { treeOptionsFor } from '../../src/cli/terminal.ts';

/** A stream of which the parts are there that a drawing depends on. */
const makeStream = (parts: Partial<NodeJS.WriteStream>): NodeJS.WriteStream => parts as NodeJS.WriteStream;

it.each<[string, Partial<NodeJS.WriteStream>, number, string]>([
  ['a terminal', { isTTY: true, columns: 80, hasColors: () => true }, 80, '\u001b[31mno\u001b[39m'],
  ['a terminal where NO_COLOR is set', { isTTY: true, columns: 80, hasColors: () => false }, 80, 'no'],
  ['a terminal that says nothing of its width', { isTTY: true, columns: 0, hasColors: () => false }, 200, 'no'],
  ['a file or a pipe', {}, 200, 'no'],
])('%s is drawn on as wide as it is, in the colours that it shows', (_, stream, widthColumns, painted) => {
  const options = treeOptionsFor(makeStream(stream));
  expect(options.widthColumns).toBe(widthColumns);
  expect(options.paint('failure', 'no')).toBe(painted);
  expect(options.paint('glyph', '')).toBe('');
});
