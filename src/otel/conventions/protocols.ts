import { SecretNames } from '../../payload/redaction/names.ts';
import { pathPattern } from '../../run/ids.ts';
import { type Attributes, json, number, same, text } from './values.ts';
import { NOTHING_NEW, type Rename, type Vocabulary, WHOLE } from './vocabulary.ts';

const URLS: readonly string[] = ['url.full', 'url.query', 'url.original', 'http.url', 'http.target'];

/**
 * Mapping table for OpenTelemetry's conventions for HTTP clients and servers:
 * https://opentelemetry.io/docs/specs/semconv/http/http-spans/
 *
 * Deprecated names come after their replacements.
 *
 * The inputs contain the full URL. If a server does not know the full URL, the inputs contain the path and the query.
 */
export const http: Vocabulary = {
  name: 'http',
  namespaces: ['http'],
  isProtocol: true,
  matches: (attributes) => methodOf(attributes) !== undefined,
  kindOf: (attributes) => ({ runType: 'chain', rename: renameOf(attributes) }),
  inputs: [
    ['http.request.method_original', 'method', text],
    ['http.request.method', 'method', text, 'repeats'],
    ['http.method', 'method', text, 'repeats'],
    ['url.full', 'url', withoutCredentials],
    ['http.url', 'url', withoutCredentials, 'repeats'],
    ['http.route', 'route', text],
    ['url.path', 'path', partOfUrl],
    ['url.query', 'query', partOfUrl],
    ['http.target', 'path', partOfUrl, 'repeats'],
    ['http.request.body.content', 'body', json],
  ],
  outputs: [
    ['http.response.status_code', 'status_code', number],
    ['http.status_code', 'status_code', number, 'repeats'],
    ['http.response.body.size', 'size', number],
    ['http.response_content_length', 'size', number, 'repeats'],
    ['http.response.body.content', 'body', json],
  ],
  cleaned: URLS,
};

function methodOf(attributes: Attributes): string | undefined {
  return text(attributes['http.request.method']) ?? text(attributes['http.method']);
}

function urlOf(attributes: Attributes): string | undefined {
  return text(attributes['url.full']) ?? text(attributes['http.url']);
}

function partOfUrl(value: unknown, attributes: Attributes): unknown {
  if (urlOf(attributes) !== undefined || value === '') return NOTHING_NEW;
  return withoutCredentials(value);
}

/** Adds the route to the run name, or the host and the path. Without a known route, spans are named after their method. */
function renameOf(attributes: Attributes): Rename | undefined {
  const method = methodOf(attributes);
  const place = text(attributes['http.route']) ?? placeOf(attributes);
  return method === undefined || place === undefined ? undefined : { from: method, to: `${method} ${place}` };
}

function placeOf(attributes: Attributes): string | undefined {
  const url = withoutCredentials(urlOf(attributes));
  const template = text(attributes['url.template']);
  const path = text(attributes['url.path']) ?? text(attributes['http.target']);
  if (url === undefined) return template ?? (path && pathPattern(withoutQuery(path)));
  if (!URL.canParse(url)) return withoutQuery(url);
  const { host, pathname } = new URL(url);
  return host + (template ?? pathPattern(pathname));
}

function withoutQuery(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? url;
}

const VECTOR_DATABASES: ReadonlySet<string> = new Set([
  ...['chroma', 'chromadb', 'lancedb', 'marqo', 'milvus', 'pinecone', 'qdrant', 'turbopuffer'],
  ...['vald', 'vespa', 'weaviate'],
]);

/** Matches database operations that write instead of search. */
const WRITES =
  /^(?:add|batch[_.]?(?:add|insert|upsert|delete)|create|delete|drop|insert|modify|put|remove|update|upsert|write)/i;

/**
 * Mapping table for OpenTelemetry's conventions for database clients:
 * https://opentelemetry.io/docs/specs/semconv/db/database-spans/
 *
 * Deprecated names come after their replacements.
 *
 * A search in a vector database becomes a `retriever` run. All other database spans become `chain` runs, because only
 * models call tools.
 */
export const database: Vocabulary = {
  name: 'database',
  namespaces: ['db'],
  isProtocol: true,
  matches: (attributes) => systemOf(attributes) !== undefined,
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
  cleaned: ['db.connection_string'],
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

/** Attributes that identify spans for messages, remote procedure calls and function invocations. */
const SYSTEMS: readonly string[] = [
  ...['messaging.system.name', 'messaging.system', 'rpc.system.name', 'rpc.system', 'faas.trigger'],
];

/**
 * Mapping table for OpenTelemetry's conventions for messaging, remote procedure calls and functions as a service:
 * https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
 * https://opentelemetry.io/docs/specs/semconv/rpc/rpc-spans/
 * https://opentelemetry.io/docs/specs/semconv/faas/faas-spans/
 *
 * Deprecated names come after their replacements. Messaging spans contain a destination but no payload.
 */
export const messaging: Vocabulary = {
  name: 'messaging',
  namespaces: ['messaging', 'rpc', 'faas'],
  isProtocol: true,
  matches: (attributes) => SYSTEMS.some((system) => attributes[system] !== undefined),
  kindOf: () => ({ runType: 'chain' }),
  inputs: [
    ['messaging.destination.name', 'destination', text],
    ['messaging.destination', 'destination', text, 'repeats'],
    ['messaging.operation.name', 'operation', text],
    ['messaging.operation.type', 'operation', text],
    ['messaging.operation', 'operation', text, 'repeats'],
    ['rpc.service', 'service', text],
    ['rpc.method_original', 'method', text],
    ['rpc.method', 'method', text, 'repeats'],
    ['faas.trigger', 'trigger', text],
    ['faas.invoked_name', 'function', text],
  ],
};

const METHOD = 'mcp.method.name';

/**
 * Mapping table for OpenTelemetry's conventions for Model Context Protocol (MCP) clients and servers:
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 *
 * GenAI attributes contain the arguments and the result of a tool. `mcp.request.argument` and `mcp.response.value` are
 * Traceloop's names.
 */
export const mcp: Vocabulary = {
  name: 'mcp',
  namespaces: ['mcp'],
  matches: (attributes) => attributes[METHOD] !== undefined,
  kindOf: (attributes) =>
    attributes[METHOD] === 'tools/call' ? { runType: 'tool', nameFrom: 'gen_ai.tool.name' } : { runType: 'chain' },
  inputs: [
    ['gen_ai.tool.call.arguments', WHOLE, json],
    ['mcp.request.argument', WHOLE, json],
    ['gen_ai.prompt.name', 'prompt', text],
    ['mcp.resource.uri', 'uri', withoutCredentials],
  ],
  outputs: [
    ['gen_ai.tool.call.result', WHOLE, json],
    ['mcp.response.value', WHOLE, json],
  ],
  cleaned: ['mcp.resource.uri'],
};

/** The text that replaces credentials in OpenTelemetry's conventions. */
const REDACTED = 'REDACTED';

/** Query parameters with signatures and keys, partly from the HTTP conventions. Google's model APIs use `key`. */
const SIGNATURES: ReadonlySet<string> = new Set([
  ...['auth', 'awsaccesskeyid', 'key', 'sig', 'signature', 'x-amz-signature', 'x-goog-signature'],
]);

const names = new SecretNames([], true);

/** Matches the user and the password in a URL. */
const USER = /^([a-z][a-z\d+.-]*:\/\/)[^/?#\s]*@/i;

/** Matches a parameter in a URL query or fragment. */
const PARAMETER = /(?<=[?&#;]|^)([^?&#;=]{1,128})=([^&#;]+)/g;

/** Returns a URL or a part of one without user and password, with keys masked. Undefined if it is not text. */
export function withoutCredentials(value: unknown): string | undefined {
  const url = text(value);
  if (url === undefined) return undefined;
  const anonymous = url.replace(USER, '$1');
  if (!anonymous.includes('=')) return anonymous;
  return anonymous.replace(PARAMETER, (parameter, name: string, value: string) =>
    SIGNATURES.has(name.toLowerCase()) || names.hidesInUrl(name, value) ? `${name}=${REDACTED}` : parameter,
  );
}
