// The events are those of https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions#vector-dbs
import { expect, test } from 'vitest';
import { recordRuns } from '../../src/testing.ts';
import { runNamed, setUp } from './set-up.ts';

test('what a vector database found becomes the documents of a retriever, without vectors', () => {
  const { tracer, recorder } = setUp();
  const span = tracer.startSpan('chroma.query', { attributes: { 'db.system': 'chroma' } });
  span.addEvent('db.query.embeddings', { 'db.query.embeddings.vector': '[0.125,0.25,0.5]' });
  span.addEvent('cache missed');
  span.addEvent('db.query.result', {
    'db.query.result.id': 'a',
    'db.query.result.score': 0.75,
    'db.query.result.distance': 0.25,
    'db.query.result.metadata': '{"page":3}',
    'db.query.result.vector': [0.375, 0.625],
    'db.query.result.document': 'A cat.',
  });
  span.addEvent('db.query.result', { 'db.query.result.id': 'b', 'db.query.result.metadata': 'odd' });
  span.end();
  const run = runNamed(recorder, 'chroma.query');
  expect(run.run_type).toBe('retriever');
  expect(run.inputs).toEqual({ embeddings: [{ dimensions: 3 }] });
  expect(run.outputs).toEqual({
    documents: [
      {
        page_content: 'A cat.',
        type: 'Document',
        metadata: { page: 3, id: 'a', score: 0.75, distance: 0.25, dimensions: 2 },
      },
      { page_content: '', type: 'Document', metadata: { metadata: 'odd', id: 'b' } },
    ],
  });
  expect(run.events?.map(({ name }) => name)).toEqual(['cache missed']);
  expect(JSON.stringify(run)).not.toMatch(/\b0\.(125|375)/);
});

test('what Milvus found is read the same way', () => {
  const { tracer, recorder } = setUp();
  const span = tracer.startSpan('milvus.search');
  span.addEvent('db.search.embeddings', { 'db.search.embeddings.vector': [0.5] });
  span.addEvent('db.search.result', {
    'db.search.query.id': 0,
    'db.search.result.id': 'a',
    'db.search.result.distance': 0.25,
    'db.search.result.entity': '{"title":"Cats"}',
  });
  span.end();
  expect(runNamed(recorder, 'milvus.search')).toMatchObject({
    run_type: 'retriever',
    inputs: { embeddings: [{ dimensions: 1 }] },
    outputs: {
      documents: [{ metadata: { title: 'Cats', id: 'a', distance: 0.25, 'db.search.query.id': 0 } }],
    },
  });
});

test('metadata of a match that Pinecone tells in an event join their match', () => {
  const { tracer, recorder } = setUp();
  const span = tracer.startSpan('pinecone.query');
  span.setAttribute('db.vector.query.result.0.id', 'a');
  span.addEvent('pinecone.query.result.0.metadata', { text: 'A cat.' });
  span.addEvent('pinecone.query.result');
  span.end();
  const run = runNamed(recorder, 'pinecone.query');
  expect(run.outputs).toEqual({
    documents: [{ page_content: '', type: 'Document', metadata: { text: 'A cat.', id: 'a' } }],
  });
  expect(run.events?.map(({ name }) => name)).toEqual(['pinecone.query.result']);
});

test.each([
  { hideInputs: true, hideOutputs: false, shown: 'A cat.', hidden: 'dimensions' },
  { hideInputs: false, hideOutputs: true, shown: 'dimensions', hidden: 'A cat.' },
])('with $hidden hidden, $shown is recorded', ({ hideInputs, hideOutputs, shown, hidden }) => {
  const { tracer } = setUp();
  const recorder = recordRuns({ hideInputs, hideOutputs });
  const span = tracer.startSpan('chroma.query');
  span.addEvent('db.query.embeddings', { 'db.query.embeddings.vector': [0.5] });
  span.addEvent('db.query.result', { 'db.query.result.document': 'A cat.' });
  span.end();
  recorder.stop();
  const recorded = JSON.stringify(recorder.runs);
  expect(recorded).toContain(shown);
  expect(recorded).not.toContain(hidden);
});
