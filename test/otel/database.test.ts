import { describe, expect, test } from 'vitest';
import { mapped } from './mapped.ts';

test('a query has its text, parameters, operation and collection', () => {
  expect(
    mapped({
      'db.system.name': 'postgresql',
      'db.namespace': 'shop',
      'db.query.text': 'SELECT * FROM users WHERE id = $1 AND name = $2',
      'db.query.summary': 'SELECT users',
      'db.query.parameter.0': '7',
      'db.query.parameter.user.name': 'Ann',
      'db.operation.name': 'SELECT',
      'db.collection.name': 'users',
      'db.response.returned_rows': 1,
      'db.response.status_code': '00000',
    }),
  ).toEqual({
    runType: 'chain',
    inputs: {
      query: 'SELECT * FROM users WHERE id = $1 AND name = $2',
      parameters: { 0: '7', 'user.name': 'Ann' },
      operation: 'SELECT',
      collection: 'users',
    },
    outputs: { returned_rows: 1, status_code: '00000' },
    metadata: { 'db.system.name': 'postgresql', 'db.namespace': 'shop', 'db.query.summary': 'SELECT users' },
  });
});

test('a query with the old names has the same fields', () => {
  expect(
    mapped({
      'db.system': 'postgresql',
      'db.name': 'shop',
      'db.statement': 'SELECT $1',
      'db.postgresql.values': ['7'],
      'db.operation': 'SELECT',
      'db.sql.table': 'users',
      'db.connection_string': 'postgresql://ann:pw@db.example:5432/shop',
    }),
  ).toEqual({
    runType: 'chain',
    inputs: { query: 'SELECT $1', parameters: ['7'], operation: 'SELECT', collection: 'users' },
    outputs: undefined,
    metadata: {
      'db.system': 'postgresql',
      'db.name': 'shop',
      'db.connection_string': 'postgresql://db.example:5432/shop',
    },
  });
});

test('a query with both names has each field once', () => {
  const run = mapped({
    'db.system.name': 'mongodb',
    'db.system': 'mongodb',
    'db.query.text': 'a',
    'db.statement': 'a',
    'db.operation.name': 'find',
    'db.operation': 'find',
    'db.collection.name': 'c',
    'db.mongodb.collection': 'c',
  });
  expect(run.inputs).toEqual({ query: 'a', operation: 'find', collection: 'c' });
  expect(run.metadata).toEqual({ 'db.system.name': 'mongodb', 'db.system': 'mongodb' });
});

test('a call of a stored procedure has its name', () => {
  const run = mapped({
    'db.system.name': 'mysql',
    'db.stored_procedure.name': 'get_user',
    'db.operation.name': 'CALL',
  });
  expect(run.inputs).toEqual({ operation: 'CALL', procedure: 'get_user' });
});

test.each([
  ['db.cassandra.table', 'cassandra'],
  ['db.cosmosdb.container', 'cosmosdb'],
])('%s is the collection of %s', (attribute, system) => {
  expect(mapped({ 'db.system': system, [attribute]: 'c' }).inputs).toEqual({ collection: 'c' });
});

describe('the type of its run', () => {
  test.each([
    ['pinecone', 'query'],
    ['Qdrant', 'search'],
    ['chroma', 'get'],
    ['weaviate', undefined],
    ['milvus', 'hybrid_search'],
  ])('is retriever for %s and the operation %s', (system, operation) => {
    expect(mapped({ 'db.system': system, 'db.operation': operation }).runType).toBe('retriever');
    expect(mapped({ 'db.system.name': system, 'db.operation.name': operation }).runType).toBe('retriever');
  });

  test.each([
    ['pinecone', 'upsert'],
    ['qdrant', 'batch_upsert'],
    ['chroma', 'Delete'],
    ['milvus', 'create_collection'],
    ['postgresql', 'SELECT'],
    ['redis', 'GET'],
    ['elasticsearch', 'search'],
  ])('is chain for %s and the operation %s', (system, operation) => {
    expect(mapped({ 'db.system.name': system, 'db.operation.name': operation }).runType).toBe('chain');
  });
});
