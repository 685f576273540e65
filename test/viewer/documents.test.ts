import { expect, test } from 'vitest';
import { documentsOf } from '#src/viewer/payload/documents.ts';

test.each([
  [
    { documents: [{ page_content: 'a', metadata: { source: 'x.md', score: 0.5 } }] },
    [{ text: 'a', title: 'x.md', score: 0.5, metadata: { source: 'x.md', score: 0.5 } }],
  ],
  [
    { matches: [{ id: '7', score: 0.9, metadata: { text: 'a' } }] },
    [{ text: 'a', title: '7', score: 0.9, metadata: { text: 'a' } }],
  ],
  [{ outputs: ['a', 'b'] }, [{ text: 'a' }, { text: 'b' }]],
  [{ output: [[{ pageContent: 'a' }, 0.25]] }, [{ text: 'a', score: 0.25 }]],
  [{ output: { results: [{ document: { text: 'a' }, score: 1 }] } }, [{ text: 'a', score: 1 }]],
  [{ documents: [] }, []],
])('%j contains documents', (outputs, documents) => {
  expect(documentsOf(outputs)).toEqual(documents);
});

test('outputs without a list of texts contain no documents', () => {
  const others = [{}, { answer: 'a' }, { documents: [{ a: 1 }] }, { documents: ['a', 1] }, 'text', null];
  expect(others.map(documentsOf)).toEqual(others.map(() => undefined));
});
