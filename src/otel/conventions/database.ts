import { withoutCredentials } from './url.ts';
import { type Attributes, number, same, text } from './values.ts';
import type { Vocabulary } from './vocabulary.ts';

const VECTOR_DATABASES: ReadonlySet<string> = new Set([
  'chroma',
  'chromadb',
  'lancedb',
  'marqo',
  'milvus',
  'pinecone',
  'qdrant',
  'turbopuffer',
  'vald',
  'vespa',
  'weaviate',
]);

/** How the names of operations begin that put something into a database instead of finding something there. */
const WRITES =
  /^(?:add|batch[_.]?(?:add|insert|upsert|delete)|create|delete|drop|insert|modify|put|remove|update|upsert|write)/i;

/**
 * OpenTelemetry's conventions for clients of databases; older names stand below those that took their place:
 * https://opentelemetry.io/docs/specs/semconv/db/database-spans/
 *
 * A search of a vector database is a retriever. Everything else is a chain: a tool is what a model has asked for, and the
 * queries of an application, however many, are none.
 */
export const database: Vocabulary = {
  name: 'database',
  roots: ['db'],
  isSpoken: (attributes) => systemOf(attributes) !== undefined,
  kindOf: (attributes) => ({ runType: isSearch(attributes) ? 'retriever' : 'chain' }),
  inputs: [
    ['db.query.text', 'query', text],
    ['db.statement', 'query', text, 'repeats'],
    ['db.query.parameter', 'parameters', same, 'below'],
    ['db.postgresql.values', 'parameters', same, 'repeats'],
    ['db.operation.name', 'operation', text],
    ['db.operation', 'operation', text, 'repeats'],
    ['db.stored_procedure.name', 'procedure', text],
    ['db.collection.name', 'collection', text],
    ['db.sql.table', 'collection', text, 'repeats'],
    ['db.mongodb.collection', 'collection', text, 'repeats'],
    ['db.cassandra.table', 'collection', text, 'repeats'],
    ['db.cosmosdb.container', 'collection', text, 'repeats'],
  ],
  outputs: [
    ['db.response.returned_rows', 'returned_rows', number],
    ['db.response.status_code', 'status_code', same],
  ],
  cleaned: new Map([['db.connection_string', withoutCredentials]]),
};

function systemOf(attributes: Attributes): string | undefined {
  return text(attributes['db.system.name']) ?? text(attributes['db.system']);
}

function isSearch(attributes: Attributes): boolean {
  const operation = text(attributes['db.operation.name']) ?? text(attributes['db.operation']);
  return (
    VECTOR_DATABASES.has(systemOf(attributes)?.toLowerCase() ?? '') &&
    (operation === undefined || !WRITES.test(operation))
  );
}
