import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { paragraphsOf, readDocuments } from '../../server/documents/paragraphs.ts';
import { temporaryFolder } from '../support/folder.ts';

test('prose is taken, items of lists each by itself; code, tables, comments and what is short are not', () => {
  const markdown = [
    '# One',
    'A [link](http://a) to *some* `code`, in a paragraph\nof **two** lines that is long enough.',
    '```js\nconst aLineOfCodeThatIsLongEnoughToBeTakenForProse = 1;\n```',
    '| a table with cells | that are long enough to be prose |',
    '## Two\n- The first item of a list, which is long enough.\n- The second_item of a list, likewise long enough.',
    '<!-- a comment that is long enough to be taken for prose -->',
    'Too short.',
  ].join('\n\n');
  expect(paragraphsOf(markdown)).toEqual([
    { heading: 'One', text: 'A link to some code, in a paragraph of two lines that is long enough.' },
    { heading: 'Two', text: 'The first item of a list, which is long enough.' },
    { heading: 'Two', text: 'The second_item of a list, likewise long enough.' },
  ]);
});

test('a paragraph is prose from 40 characters on, and is cut after 2 000', () => {
  const lengths = [39, 40, 2_000, 2_001].map((length) => paragraphsOf('abcd'.repeat(501).slice(0, length)));
  expect(lengths.map((found) => found.map(({ text }) => text.length))).toEqual([[], [40], [2_000], [2_000]]);
});

test('a folder is read with those in it, the same words once, and nothing that is hidden or no Markdown', () => {
  using folder = temporaryFolder();
  const [one, two] = ['One', 'Two'].map((word) => `${word} is a paragraph that is long enough to be read.`);
  for (const path of ['inner', '.hidden']) mkdirSync(join(folder.path, path));
  const files = {
    'b.md': `${two}\n\n${one}`,
    'inner/a.MARKDOWN': one,
    'c.txt': two,
    '.hidden/d.md': two,
    '.e.md': two,
  };
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder.path, path), text as string);
  expect(readDocuments(folder.path)).toEqual([
    { id: 0, text: two, heading: '', source: 'b.md' },
    { id: 1, text: one, heading: '', source: 'b.md' },
  ]);
});
