import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { RunSpanProcessor } from '../../src/otel.ts';
import { recordRuns } from '../../src/testing.ts';
import { mapped as spanMapped } from './mapped.ts';
import { runNamed, setUp } from './set-up.ts';

/** Names from https://opentelemetry.io/docs/specs/semconv/http/http-spans/, and those of its version 1.20. */
const mapped = (attributes: Attributes) => {
  const name = String(attributes['http.request.method'] ?? attributes['http.method']);
  const { name: own, runType, inputs, outputs, metadata } = spanMapped(attributes, { name });
  return { name: own, runType, inputs, outputs, metadata };
};

describe('a request', () => {
  test('of a client has its URL without credentials', () => {
    expect(
      mapped({
        'http.request.method': 'POST',
        'url.full': 'https://ann:pw@a.example:8443/v1/chat?api_key=k&n=1',
        'server.address': 'a.example',
        'server.port': 8443,
        'http.response.status_code': 201,
        'http.response.body.size': 512,
        'http.request.resend_count': 1,
        'http.request.body.content': '{"a":1}',
        'http.response.body.content': 'ok',
      }),
    ).toEqual({
      name: 'POST a.example:8443/v1/chat',
      runType: 'chain',
      inputs: { method: 'POST', url: 'https://a.example:8443/v1/chat?api_key=REDACTED&n=1', body: { a: 1 } },
      outputs: { status_code: 201, size: 512, body: 'ok' },
      metadata: { 'server.address': 'a.example', 'server.port': 8443, 'http.request.resend_count': 1 },
    });
  });

  test('of a client with the old names has the same fields', () => {
    expect(
      mapped({
        'http.method': 'GET',
        'http.url': 'http://a.example/b?c=d',
        'http.target': '/b?c=d',
        'http.host': 'a.example',
        'http.status_code': '404',
        'http.response_content_length': 7,
      }),
    ).toEqual({
      name: 'GET a.example/b',
      runType: 'chain',
      inputs: { method: 'GET', url: 'http://a.example/b?c=d' },
      outputs: { status_code: 404, size: 7 },
      metadata: { 'http.host': 'a.example' },
    });
  });

  test('on a server has its route, path and query', () => {
    expect(
      mapped({
        'http.request.method': 'GET',
        'url.scheme': 'http',
        'url.path': '/users/7',
        'url.query': 'fields=name&token=t',
        'http.route': '/users/:id',
        'http.response.status_code': 200,
      }),
    ).toEqual({
      name: 'GET /users/:id',
      runType: 'chain',
      inputs: { method: 'GET', route: '/users/:id', path: '/users/7', query: 'fields=name&token=REDACTED' },
      outputs: { status_code: 200 },
      metadata: { 'url.scheme': 'http' },
    });
  });

  test('on a server with the old names has the same fields', () => {
    const attributes = { 'http.method': 'GET', 'http.target': '/users/7?a=b', 'http.scheme': 'http' };
    expect(mapped({ ...attributes, 'http.status_code': 200 })).toEqual({
      name: 'GET /users/7',
      runType: 'chain',
      inputs: { method: 'GET', path: '/users/7?a=b' },
      outputs: { status_code: 200 },
      metadata: { 'http.scheme': 'http' },
    });
  });

  test('with both names has each field once', () => {
    const run = mapped({
      'http.request.method': 'GET',
      'http.method': 'GET',
      'url.full': 'http://a.example/b',
      'http.url': 'http://a.example/b',
      'http.target': '/b',
      'http.response.status_code': 200,
      'http.status_code': 200,
    });
    expect(run).toMatchObject({ inputs: { method: 'GET', url: 'http://a.example/b' }, outputs: { status_code: 200 } });
    expect(run.metadata).toEqual({});
  });

  test('with an unknown method has the original method', () => {
    const run = mapped({ 'http.request.method': '_OTHER', 'http.request.method_original': 'BREW', 'url.path': '/pot' });
    expect(run.inputs).toEqual({ method: 'BREW', path: '/pot' });
  });

  test('with a URL template is named after the template', () => {
    const run = mapped({
      'http.request.method': 'GET',
      'url.full': 'https://a.example/users/7',
      'url.template': '/users/{id}',
    });
    expect(run.name).toBe('GET a.example/users/{id}');
  });

  test.each([['/b?c'], ['b c'], ['http://[broken/x?y']])('with the invalid URL %j is recorded', (url) => {
    const run = mapped({ 'http.request.method': 'GET', 'url.full': url });
    expect(run).toMatchObject({ name: `GET ${url.split('?')[0]}`, inputs: { method: 'GET', url } });
  });

  test.each<[string, Attributes]>([
    ['an invalid method', { 'http.request.method': 7, 'url.full': 'https://ann:pw@a.example/' }],
    ['other inputs', { 'http.request.method': 'GET', 'input.value': 'x', 'url.query': 'key=k' }],
  ])('with %s leaves no credentials in the metadata', (_, attributes) => {
    const { metadata } = mapped(attributes);
    expect(JSON.stringify(metadata)).not.toMatch(/pw|=k/);
    expect(Object.keys(metadata)).toContain(Object.keys(attributes).at(-1));
  });
});

describe('the name of its run', () => {
  const attributes = { 'http.request.method': 'GET', 'url.full': 'https://a.example/b' };
  const named = (name: string, processors = [new RunSpanProcessor()]) => {
    const { tracer, recorder } = setUp({ processors });
    tracer.startSpan(name, { attributes }).end();
    return recorder.runs[0]?.name;
  };

  test('contains the URL if the span is named after the method', () => {
    expect(named('GET')).toBe('GET a.example/b');
  });

  test.each([['GET /b'], ['fetch the page'], ['G']])('is the name of the span if this is %s', (name) => {
    expect(named(name)).toBe(name);
  });

  test('contains no URL if inputs are hidden', () => {
    const recorder = recordRuns({ hideInputs: true });
    recorder.stop();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: recorder.exporter })] });
    tracer.startSpan('GET', { attributes }).end();
    expect(recorder.runs).toMatchObject([{ name: 'GET' }]);
    expect(JSON.stringify(recorder.runs)).not.toContain('a.example');
  });
});

// Anthropic's SDK, and other clients, describe the request of a model call on the span of the call.
test.each([
  ['llm', { 'gen_ai.operation.name': 'chat' }],
  ['embedding', { 'gen_ai.operation.name': 'embeddings' }],
  ['tool', { 'openinference.span.kind': 'TOOL' }],
])('a request made by a run of type %s is not recorded as its payload', (runType, attributes) => {
  const { tracer, recorder } = setUp();
  const request = {
    'http.request.method': 'POST',
    'http.route': '/v1/messages',
    'url.full': 'https://ann:pw@a.example/v1/messages',
    'server.address': 'a.example',
  };
  const span = tracer.startSpan('call', { attributes: { ...attributes, ...request } });
  span.setAttribute('http.response.status_code', 200);
  span.end();
  const { run_type, inputs, outputs, extra } = runNamed(recorder, 'call');
  expect({ run_type, inputs, outputs: outputs ?? {} }).toEqual({ run_type: runType, inputs: {}, outputs: {} });
  expect(extra?.metadata).toMatchObject({
    ...request,
    'url.full': 'https://a.example/v1/messages',
    'http.response.status_code': 200,
  });
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
])('the URL %s is recorded as %s', (url, recorded) => {
  expect(mapped({ 'http.request.method': 'GET', 'url.full': url }).inputs).toEqual({ method: 'GET', url: recorded });
});

test.each([[7], [['https://a.example']], ['']])('the invalid URL %j stays in the metadata', (value) => {
  const { inputs, metadata } = mapped({ 'http.request.method': 'GET', 'url.full': value });
  expect({ inputs, metadata }).toEqual({ inputs: { method: 'GET' }, metadata: { 'url.full': value } });
});
