import { expect, test } from 'vitest';
import type { Paragraph } from '../../server/documents/paragraphs.ts';
import { Retriever } from '../../server/documents/retriever.ts';

const retriever = new Retriever(
  [
    ['birds.md', 'Birds', 'A bird has feathers and lays eggs.'],
    ['birds.md', 'Herons', 'It stands still in shallow water and waits for fish.'],
    ['birds.md', 'Herons', 'The young eat frogs, too.'],
    ['otters.md', 'Otters', 'It hunts fish at night, along rivers.'],
  ].map(([source = '', heading = '', text = ''], id): Paragraph => ({ id, text, heading, source })),
);
const found = (question: string, limit?: number): number[] => retriever.retrieve(question, limit).map(({ id }) => id);

test('what a question has in common with a heading or a file counts, in singular and plural', () => {
  expect(found('Where do herons live?')).toEqual([1, 2]);
  expect(found('otter')).toEqual([3]);
});

test('as many are found as are asked for, five where nothing is said', () => {
  expect(found('fish', 1)).toHaveLength(1);
  expect(found('fish', 2)).toHaveLength(2);
  expect(found('fish', 3)).toHaveLength(2);
  const many = Array.from({ length: 6 }, (_, id) => ({ id, text: `fish ${id}`, heading: '', source: `${id}.md` }));
  expect(new Retriever(many).retrieve('fish')).toHaveLength(5);
});

test('what all questions have finds nothing, and a file is not found by its ending', () => {
  expect(found('What is it?')).toEqual([]);
  expect(found('md')).toEqual([]);
});
