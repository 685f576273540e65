import { expect, test } from 'vitest';
import { vocabularies } from '../../src/otel/row-index.ts';

const firstWord = (name: string): string => name.split('.', 1)[0] as string;

const always = vocabularies.filter(({ isSpoken }) => isSpoken === undefined);

test.each(always.map((vocabulary) => [vocabulary.name, vocabulary] as const))(
  'all that %s reads begins with a word by which it is spoken',
  (_, { roots, inputs, outputs, usage, parameters, metadata, tags, times, spent = [], project = [] }) => {
    const rows = [inputs, outputs, usage, parameters, metadata, tags, times].flatMap((table = []) => table);
    const names = [...rows.map(([name]) => name), ...spent, ...[project].flat()];
    expect(names.filter((name) => !roots.includes(firstWord(name)))).toEqual([]);
  },
);

test('there are no more vocabularies than bits to note them by', () => {
  expect(vocabularies.length).toBeLessThanOrEqual(31);
});
