// Names from https://opentelemetry.io/docs/specs/semconv/ (`http/http-spans/` and its version 1.20, `db/database-spans/`,
// `messaging/messaging-spans/`, `rpc/rpc-spans/`, `faas/faas-spans/`) and the GenAI conventions for MCP.
import { describe, expect, test } from 'vitest';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { recordRuns } from '#src/testing.ts';
import { expectFields, expectRun, type FieldRow, type Mapped, mapped as spanMapped } from './mapped.ts';
import { runNamed, setUp } from './set-up.ts';

/** Maps a span that is named after its method. */
const mapped = (attributes: Attributes) =>
  spanMapped(attributes, { name: String(attributes['http.request.method'] ?? attributes['http.method']) });

describe('an HTTP request', () => {
  const GET = { 'http.request.method': 'GET' };

  const testRequest = (title: string, method: string, rows: readonly FieldRow[]) =>
    test(title, () =>
      expectFields([['', 'chain', 'runType'], ['', method, 'inputs/method'], ...rows], { name: method }),
    );

  testRequest('of a client has its URL without credentials', 'POST', [
    ['http.request.method', 'POST'],
    ['', 'POST a.example:8443/v1/chat', 'name'],
    ['url.full', 'https://ann:pw@a.example:8443/v1/chat?api_key=k&n=1'],
    ['', 'https://a.example:8443/v1/chat?api_key=REDACTED&n=1', 'inputs/url'],
    ['server.address', 'a.example', 'metadata/server.address'],
    ['http.response.status_code', 201, 'outputs/status_code'],
    ['http.response.body.size', 512, 'outputs/size'],
    ['http.request.resend_count', 1, 'metadata/http.request.resend_count'],
    ['http.request.body.content', '{"a":1}', 'inputs/body', { a: 1 }],
    ['http.response.body.content', 'ok', 'outputs/body'],
  ]);

  testRequest('of a client with the old names has the same fields', 'GET', [
    ['http.method', 'GET', 'name', 'GET a.example/b'],
    ['http.url', 'http://a.example/b?c=d', 'inputs/url'],
    ['http.target', '/b?c=d'],
    ['http.host', 'a.example', 'metadata/http.host'],
    ['http.status_code', '404', 'outputs/status_code', 404],
    ['http.response_content_length', 7, 'outputs/size'],
  ]);

  testRequest('on a server has its route, path and query', 'GET', [
    ['http.request.method', 'GET', 'name', 'GET /users/:id'],
    ['url.scheme', 'http', 'metadata/url.scheme'],
    ['url.path', '/users/7', 'inputs/path'],
    ['url.query', 'fields=name&token=t', 'inputs/query', 'fields=name&token=REDACTED'],
    ['http.route', '/users/:id', 'inputs/route'],
    ['http.response.status_code', 200, 'outputs/status_code'],
  ]);

  testRequest('on a server with the old names has the same fields', 'GET', [
    ['http.method', 'GET', 'name', 'GET /users/:id'],
    ['http.target', '/users/7?a=b', 'inputs/path'],
    ['http.scheme', 'http', 'metadata/http.scheme'],
    ['http.status_code', 200, 'outputs/status_code'],
  ]);

  testRequest('with both names has each field once', 'GET', [
    ['http.request.method', 'GET', 'name', 'GET a.example/b'],
    ['http.method', 'GET'],
    ['url.full', 'http://a.example/b', 'inputs/url'],
    ['http.url', 'http://a.example/b'],
    ['http.target', '/b'],
    ['http.response.status_code', 200, 'outputs/status_code'],
    ['http.status_code', 200],
  ]);

  test.each<[string, Attributes, Partial<Mapped>]>([
    [
      'an unknown method has the original method',
      { 'http.request.method': '_OTHER', 'http.request.method_original': 'BREW', 'url.path': '/pot' },
      { inputs: { method: 'BREW', path: '/pot' } },
    ],
    [
      'a URL template has the template in its name',
      { ...GET, 'url.full': 'https://a.example/users/7', 'url.template': '/users/{id}' },
      { name: 'GET a.example/users/{id}' },
    ],
    [
      'ids in its URL has a name without them',
      { ...GET, 'url.full': 'https://a.example/v1/users/7/files/01ARZ3NDEKTSV4RRFFQ69G5FAV' },
      { name: 'GET a.example/v1/users/:id/files/:id' },
    ],
  ])('with %s', (_, attributes, expected) => {
    expectRun(mapped(attributes), expected);
  });

  test.each([['/b?c'], ['b c'], ['http://[broken/x?y']])('with the invalid URL %j is recorded', (url) => {
    expectRun(mapped({ ...GET, 'url.full': url }), {
      name: `GET ${url.split('?')[0]}`,
      inputs: { method: 'GET', url },
    });
  });

  test.each([[7], [['https://a.example']], ['']])('keeps the URL %j in the metadata', (value) => {
    expectRun(mapped({ ...GET, 'url.full': value }), { inputs: { method: 'GET' }, metadata: { 'url.full': value } });
  });

  test.each<[string, Attributes]>([
    ['an invalid method', { 'http.request.method': 7, 'url.full': 'https://ann:pw@a.example/' }],
    ['other inputs', { ...GET, 'input.value': 'x', 'url.query': 'key=k' }],
  ])('with %s leaves no credentials in the metadata', (_, attributes) => {
    const { metadata } = mapped(attributes);
    expect(JSON.stringify(metadata)).not.toMatch(/pw|=k/);
    expect(Object.keys(metadata)).toContain(Object.keys(attributes).at(-1));
  });

  test.each([
    ['https://a.example/b?c=d#e', 'https://a.example/b?c=d#e'],
    ['https://ann:pw@a.example/b', 'https://a.example/b'],
    ['https://ann@a.example:8080/@b', 'https://a.example:8080/@b'],
    ['https://ann:p@w@a.example/', 'https://a.example/'],
    ['postgres://ann:pw@db.example/shop', 'postgres://db.example/shop'],
    ['https://a.example/mail?to=b@c.example', 'https://a.example/mail?to=b@c.example'],
    ['/a?api_key=1&page=2', '/a?api_key=REDACTED&page=2'],
    ['https://a.example/a?page=2&key=AIza1', 'https://a.example/a?page=2&key=REDACTED'],
    ['?X-Amz-Signature=1&X-Amz-Date=2', '?X-Amz-Signature=REDACTED&X-Amz-Date=2'],
    ['AWSAccessKeyId=1&Signature=2&sig=3', 'AWSAccessKeyId=REDACTED&Signature=REDACTED&sig=REDACTED'],
    ['https://a.example/#access_token=1&id=2', 'https://a.example/#access_token=REDACTED&id=2'],
    ['/a?page_token=1&sort_key=2&token=', '/a?page_token=1&sort_key=2&token='],
    ['not a url', 'not a url'],
  ])('has the URL %s as %s', (url, recorded) => {
    expect(mapped({ ...GET, 'url.full': url }).inputs).toEqual({ method: 'GET', url: recorded });
  });

  test('has the name of its span if this is more than the method', () => {
    for (const name of ['GET /b', 'fetch the page', 'G'])
      expect(spanMapped({ ...GET, 'url.full': 'https://a.example/b' }, { name }).name).toBeUndefined();
  });

  test('has no URL in its name if inputs are hidden', () => {
    const recorder = recordRuns({ hideInputs: true });
    recorder.stop();
    const { tracer } = setUp({
      processors: [new RunSpanProcessor({ exporter: recorder.exporter, shouldExport: 'all' })],
    });
    tracer.startSpan('GET', { attributes: { ...GET, 'url.full': 'https://a.example/b' } }).end();
    expect(recorder.runs).toMatchObject([{ name: 'GET' }]);
    expect(JSON.stringify(recorder.runs)).not.toContain('a.example');
  });

  // Anthropic's SDK, and other clients, describe the request of a model call on the span of the call.
  test.each([
    ['llm', { 'gen_ai.operation.name': 'chat' }],
    ['embedding', { 'gen_ai.operation.name': 'embeddings' }],
    ['tool', { 'openinference.span.kind': 'TOOL' }],
  ])('made by a run of type %s is not recorded as its payload', (runType, attributes) => {
    const { tracer, recorder } = setUp();
    const request = { 'http.request.method': 'POST', 'http.route': '/v1/messages', 'server.address': 'a.example' };
    const url = { 'url.full': 'https://ann:pw@a.example/v1/messages' };
    const span = tracer.startSpan('call', { attributes: { ...attributes, ...request, ...url } });
    span.setAttribute('http.response.status_code', 200).end();
    const { run_type, inputs, outputs, extra } = runNamed(recorder, 'call');
    expect({ run_type, inputs, outputs: outputs ?? {} }).toEqual({ run_type: runType, inputs: {}, outputs: {} });
    const recorded = { 'url.full': 'https://a.example/v1/messages', 'http.response.status_code': 200 };
    expect(extra?.metadata).toMatchObject({ ...request, ...recorded });
  });
});

const testRun = (title: string, runType: string, rows: readonly FieldRow[]) =>
  test(title, () => expectFields([['', runType, 'runType'], ...rows]));

describe('a query of a database', () => {
  testRun('has its text, parameters, operation and collection', 'chain', [
    ['db.system.name', 'postgresql', 'metadata/db.system.name'],
    ['db.namespace', 'shop', 'metadata/db.namespace'],
    ['db.query.text', 'SELECT * FROM users WHERE id = $1', 'inputs/query'],
    ['db.query.summary', 'SELECT users', 'metadata/db.query.summary'],
    ['db.query.parameter.1', '7', 'inputs/parameters/1'],
    ['db.query.parameter.user.name', 'Ann', 'inputs/parameters/user.name'],
    ['db.operation.name', 'SELECT', 'inputs/operation'],
    ['db.collection.name', 'users', 'inputs/collection'],
    ['db.response.returned_rows', 1, 'outputs/returned_rows'],
    ['db.response.status_code', '00000', 'outputs/status_code'],
  ]);

  testRun('with the old names has the same fields', 'chain', [
    ['db.system', 'postgresql', 'metadata/db.system'],
    ['db.name', 'shop', 'metadata/db.name'],
    ['db.statement', 'SELECT $1', 'inputs/query'],
    ['db.postgresql.values', ['7'], 'inputs/parameters'],
    ['db.operation', 'SELECT', 'inputs/operation'],
    ['db.sql.table', 'users', 'inputs/collection'],
    ['db.connection_string', 'postgresql://ann:pw@db.example:5432/shop'],
    ['', 'postgresql://db.example:5432/shop', 'metadata/db.connection_string'],
  ]);

  testRun('with both names has each field once', 'chain', [
    ['db.system.name', 'mongodb', 'metadata/db.system.name'],
    ['db.system', 'mongodb', 'metadata/db.system'],
    ['db.query.text', 'a', 'inputs/query'],
    ['db.statement', 'a'],
    ['db.operation.name', 'find', 'inputs/operation'],
    ['db.operation', 'find'],
    ['db.collection.name', 'c', 'inputs/collection'],
    ['db.mongodb.collection', 'c'],
  ]);

  test.each([
    ['db.stored_procedure.name', 'procedure'],
    ['db.cassandra.table', 'collection'],
    ['db.cosmosdb.container', 'collection'],
  ])('with the attribute %s has a %s', (attribute, key) => {
    expect(mapped({ 'db.system': 'any', [attribute]: 'c' }).inputs).toEqual({ [key]: 'c' });
  });

  test.each([
    ['retriever', 'pinecone query, Qdrant search, chroma get, weaviate, milvus hybrid_search'],
    ['chain', 'pinecone upsert, qdrant batch_upsert, chroma Delete, milvus create_collection'],
    ['chain', 'postgresql SELECT, redis GET, elasticsearch search'],
  ])('is a %s for the systems and operations %s', (runType, kinds) => {
    for (const kind of kinds.split(', ')) {
      const [system, operation] = kind.split(' ');
      const current = mapped({ 'db.system.name': system, 'db.operation.name': operation });
      const old = mapped({ 'db.system': system, 'db.operation': operation });
      expect([kind, current.runType, old.runType]).toEqual([kind, runType, runType]);
    }
  });
});

describe('a request of MCP', () => {
  test.each<[string, FieldRow[]]>([
    ['has an operation', [['gen_ai.operation.name', 'execute_tool', 'metadata/gen_ai.operation.name']]],
    ['has no operation', []],
  ])('is a tool if it calls a tool and %s', (_, operation) => {
    expectFields([
      ['', 'tool', 'runType'],
      ['mcp.method.name', 'tools/call', 'metadata/mcp.method.name'],
      ['gen_ai.tool.name', 'weather', 'name'],
      ['gen_ai.tool.call.arguments', '{"city":"Cork"}', 'inputs', { city: 'Cork' }],
      ['gen_ai.tool.call.result', '{"rain":true}', 'outputs', { rain: true }],
      ['jsonrpc.request.id', '7', 'metadata/jsonrpc.request.id'],
      ['mcp.session.id', 's1', 'metadata/mcp.session.id'],
      ...operation,
    ]);
  });

  test.each<[string, Attributes, object | undefined]>([
    ['prompts/get', { 'gen_ai.prompt.name': 'analyse' }, { prompt: 'analyse' }],
    ['resources/read', { 'mcp.resource.uri': 'postgres://ann:pw@db.example/a' }, { uri: 'postgres://db.example/a' }],
    ['initialize', {}, undefined],
  ])('is a chain if it is %s', (method, attributes, inputs) => {
    const run = spanMapped({ 'mcp.method.name': method, ...attributes });
    expectRun(run, { runType: 'chain', name: undefined, inputs, metadata: {} });
  });

  test('has the arguments and values of Traceloop', () => {
    const value = '[{"type":"text","text":"b"}]';
    const given = { 'mcp.method.name': 'tools/call', 'mcp.request.argument': '{"a":1}', 'mcp.response.value': value };
    expectRun(mapped(given), { inputs: { a: 1 }, outputs: { output: [{ type: 'text', text: 'b' }] } });
  });
});

test.each<[string, string, object]>([
  ['messaging', 'destination.name=orders operation.name=send', { destination: 'orders', operation: 'send' }],
  ['messaging', 'operation.type=receive', { operation: 'receive' }],
  ['messaging', 'destination=orders operation=process', { destination: 'orders', operation: 'process' }],
  ['rpc', 'method=shop.Orders/Add', { method: 'shop.Orders/Add' }],
  ['rpc', 'method=_OTHER method_original=shop.Orders/Brew', { method: 'shop.Orders/Brew' }],
  ['rpc', 'service=S3 method=PutObject', { service: 'S3', method: 'PutObject' }],
  ['faas', 'trigger=timer', { trigger: 'timer' }],
])('a span of %s with %s is a chain with inputs', (namespace, fields, inputs) => {
  const attributes = fields.split(' ').map((field) => `${namespace}.${field}`.split('='));
  const left = { [`${namespace}.system`]: 'kafka', [`${namespace}.response.status_code`]: 'OK' };
  expectRun(mapped({ ...left, ...Object.fromEntries(attributes) }), { runType: 'chain', inputs, metadata: left });
});
