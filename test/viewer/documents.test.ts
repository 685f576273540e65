import { expect, test } from 'vitest';
import { documentsOf } from '../../src/viewer/payload/documents.ts';

test('documents of LangChain, of vector stores and of lists of text are the same', () => {
  expect(documentsOf({ documents: [{ page_content: 'a', metadata: { source: 'x.md', score: 0.5 } }] })).toEqual([
    { text: 'a', title: 'x.md', score: 0.5, metadata: { source: 'x.md', score: 0.5 } },
  ]);
  expect(documentsOf({ matches: [{ id: '7', score: 0.9, metadata: { text: 'a' } }] })).toEqual([
    { text: 'a', title: '7', score: 0.9, metadata: { text: 'a' } },
  ]);
  expect(documentsOf({ outputs: ['a', 'b'] })).toEqual([{ text: 'a' }, { text: 'b' }]);
  expect(documentsOf({ output: [[{ pageContent: 'a' }, 0.25]] })).toEqual([{ text: 'a', score: 0.25 }]);
  expect(documentsOf({ output: { results: [{ document: { text: 'a' }, score: 1 }] } })).toEqual([
    { text: 'a', score: 1 },
  ]);
});

test('that nothing was found is an answer, too', () => {
  expect(documentsOf({ documents: [] })).toEqual([]);
});

test.each([[{}], [{ answer: 'a' }], [{ documents: [{ a: 1 }] }], [{ documents: ['a', 1] }], ['text'], [null]])(
  'there are no documents in %j',
  (value) => {
    expect(documentsOf(value)).toBeUndefined();
  },
);
