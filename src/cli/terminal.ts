import { styleText } from 'node:util';
import type { Ink, TreeOptions } from './tree.ts';

/** A log keeps longer lines than a screen. */
const LOG_COLUMNS = 200;

const STYLES: Readonly<Record<Ink, Parameters<typeof styleText>[0]>> = {
  glyph: 'gray',
  name: 'bold',
  type: 'cyan',
  detail: 'gray',
  notice: 'yellow',
  failure: 'red',
};

/** How trees are drawn on a stream as it is now: its width, and colours where it shows them and `NO_COLOR` is unset. */
export function treeOptionsFor(stream: NodeJS.WriteStream): Required<TreeOptions> {
  const hasColours = stream.isTTY && stream.hasColors();
  return {
    // Some terminals say 0.
    widthColumns: stream.columns || LOG_COLUMNS,
    paint: (ink, text) => (hasColours && text !== '' ? styleText(STYLES[ink], text, { validateStream: false }) : text),
  };
}

/** Writes all that was written before; a reader that has gone is as good as one that has read. */
export function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()));
}
