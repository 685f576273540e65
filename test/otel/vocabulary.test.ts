import { expect, test } from 'vitest';
import { vocabularies } from '../../src/otel/row-index.ts';

const firstWord = (name: string): string => name.split('.', 1)[0] as string;

const always = vocabularies.filter(({ matches }) => matches === undefined);

test.each(always.map((vocabulary) => [vocabulary.name, vocabulary] as const))(
  'all attributes that %s reads start with one of its namespaces',
  (_, { namespaces, inputs, outputs, usage, parameters, metadata, tags, times, ignored = [], project = [] }) => {
    const rows = [inputs, outputs, usage, parameters, metadata, tags, times].flatMap((table = []) => table);
    const names = [...rows.map(([name]) => name), ...ignored, ...[project].flat()];
    expect(names.filter((name) => !namespaces.includes(firstWord(name)))).toEqual([]);
  },
);

test('the vocabularies fit into 31 bits', () => {
  expect(vocabularies.length).toBeLessThanOrEqual(31);
});
