// The events are those of https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions#vector-dbs
import { expect, test } from 'vitest';
import type { SpanLike } from '../../src/otel.ts';
import { mapped } from './mapped.ts';

type Event = readonly [name: string, attributes?: Record<string, unknown>];

/** Returns the run of a span with these events. */
const withEvents = (events: readonly Event[], attributes = {}, hidden = {}) =>
  mapped(
    attributes,
    { events: events.map(([name, fields]) => ({ name, time, attributes: fields })) as Events },
    hidden,
  );

type Events = SpanLike['events'];
const time = [1, 0] as const;

test('results of a vector database become the documents of a retriever, without vectors', () => {
  const run = withEvents(
    [
      ['db.query.embeddings', { 'db.query.embeddings.vector': '[0.125,0.25,0.5]' }],
      ['cache missed'],
      [
        'db.query.result',
        {
          'db.query.result.id': 'a',
          'db.query.result.score': 0.75,
          'db.query.result.distance': 0.25,
          'db.query.result.metadata': '{"page":3}',
          'db.query.result.vector': [0.375, 0.625],
          'db.query.result.document': 'A cat.',
        },
      ],
      ['db.query.result', { 'db.query.result.id': 'b', 'db.query.result.metadata': 'odd' }],
    ],
    { 'db.system': 'chroma' },
  );
  const metadata = { page: 3, id: 'a', score: 0.75, distance: 0.25, dimensions: 2 };
  expect(run).toMatchObject({
    runType: 'retriever',
    inputs: { embeddings: [{ dimensions: 3 }] },
    outputs: {
      documents: [
        { page_content: 'A cat.', type: 'Document', metadata },
        { page_content: '', type: 'Document', metadata: { metadata: 'odd', id: 'b' } },
      ],
    },
    events: [{ name: 'cache missed' }],
  });
  expect(JSON.stringify(run)).not.toMatch(/\b0\.(125|375)/);
});

test('results of Milvus become the documents of a retriever', () => {
  const fields = { id: 'a', distance: 0.25, entity: '{"title":"Cats"}' };
  const result = Object.entries(fields).map(([key, value]) => [`db.search.result.${key}`, value]);
  const run = withEvents([
    ['db.search.embeddings', { 'db.search.embeddings.vector': [0.5] }],
    ['db.search.result', { 'db.search.query.id': 0, ...Object.fromEntries(result) }],
  ]);
  expect(run).toMatchObject({
    runType: 'retriever',
    inputs: { embeddings: [{ dimensions: 1 }] },
    outputs: { documents: [{ metadata: { title: 'Cats', id: 'a', distance: 0.25, 'db.search.query.id': 0 } }] },
  });
});

test('metadata in an event of Pinecone is added to its match', () => {
  const { outputs, events } = withEvents(
    [['pinecone.query.result.0.metadata', { text: 'A cat.' }], ['pinecone.query.result']],
    { 'db.vector.query.result.0.id': 'a' },
  );
  expect(outputs).toEqual({
    documents: [{ page_content: '', type: 'Document', metadata: { text: 'A cat.', id: 'a' } }],
  });
  expect(events).toMatchObject([{ name: 'pinecone.query.result' }]);
});

test.each([
  { hideInputs: true, hideOutputs: false, shown: 'A cat.', hidden: 'dimensions' },
  { hideInputs: false, hideOutputs: true, shown: 'dimensions', hidden: 'A cat.' },
])('with $hidden hidden, $shown is recorded', ({ hideInputs, hideOutputs, shown, hidden }) => {
  const events: Event[] = [
    ['db.query.embeddings', { 'db.query.embeddings.vector': [0.5] }],
    ['db.query.result', { 'db.query.result.document': 'A cat.' }],
  ];
  const recorded = JSON.stringify(withEvents(events, {}, { hideInputs, hideOutputs }));
  expect(recorded).toContain(shown);
  expect(recorded).not.toContain(hidden);
});
