import { SpanStatusCode } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { redact } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { payloadRules } from '#src/payload/truncate.ts';
import { recordRuns } from '#src/testing.ts';
import { environmentOf } from '../support/environment.ts';
import { noting, setUp } from './set-up.ts';

const SECRET = 'SSSSSSSS';

/** Creates the tracer of a library whose spans are recorded with this redaction. */
function tracerWith(redaction = redact({ patterns: [/S{8}/], paths: ['**.email'] })) {
  const recorder = recordRuns({ redact: redaction });
  recorder.stop();
  return {
    ...setUp({ processors: [new RunSpanProcessor({ exporter: recorder.exporter, shouldExport: 'all' })] }),
    recorder,
  };
}

test('redaction applies to all fields of a span', () => {
  const { recorder, tracer } = tracerWith();
  const span = tracer.startSpan(`call ${SECRET}`, {
    attributes: {
      'openinference.span.kind': 'LLM',
      'input.value': JSON.stringify({ text: SECRET, email: 'a', password: 'b' }),
      'input.mime_type': 'application/json',
      'http.request.header.authorization': 'Bearer x',
      'app.note': `note ${SECRET}`,
      'tag.tags': [`tag ${SECRET}`],
    },
  });
  span.setAttribute('output.value', `answer ${SECRET}`);
  span.addEvent(`event ${SECRET}`, { note: SECRET, api_key: 'k' });
  span.recordException(new Error(`no ${SECRET}`));
  span.setStatus({ code: SpanStatusCode.ERROR, message: `failed ${SECRET}` });
  span.end();
  const [run] = recorder.runs;
  expect(JSON.stringify(run)).not.toMatch(/SSSS|Bearer x/);
  expect(run).toMatchObject({
    name: 'call [Redacted]',
    inputs: { text: '[Redacted]', email: '[Redacted]', password: '[Redacted]' },
    outputs: { output: 'answer [Redacted]' },
    tags: ['tag [Redacted]'],
    error: expect.stringMatching(/^failed \[Redacted\]\nCaused by: Error: no \[Redacted\]\n/),
    extra: { metadata: { 'app.note': 'note [Redacted]', 'http.request.header.authorization': '[Redacted]' } },
  });
  expect(run?.events?.[0]).toMatchObject({
    name: 'event [Redacted]',
    kwargs: { note: '[Redacted]', api_key: '[Redacted]' },
  });
});

test('JSON text without secrets is not changed', () => {
  const { recorder, tracer } = tracerWith(redact());
  tracer.startSpan('call', { attributes: { 'input.value': '{"max_tokens": 5}' } }).end();
  expect(recorder.runs[0]?.inputs).toEqual({ max_tokens: 5 });
});

test('JSON text inside JSON text is redacted', () => {
  const { recorder, tracer } = tracerWith(redact());
  const messages = (password: string) => ({
    messages: [{ tool_calls: [{ function: { arguments: JSON.stringify({ user: 'ada', password }) } }] }],
    urls: [`https://example.com/?api_key=${password}`],
    headers: [['authorization', password]],
    fields: [{ name: 'password', value: password }],
  });
  tracer
    .startSpan('call', {
      attributes: {
        'openinference.span.kind': 'TOOL',
        'input.value': JSON.stringify(messages('k9Xw27abQ4')),
        'input.mime_type': 'application/json',
        'app.body': JSON.stringify({ token: 'k9Xw27abQ4' }),
        'app.url': 'https://example.com/?access_token=k9Xw27abQ4',
      },
    })
    .end();
  const [run] = recorder.runs;
  expect(run?.inputs).toEqual(messages('[Redacted]'));
  expect(JSON.stringify(run)).not.toContain('k9Xw27abQ4');
});

test('redaction of a resource is separate for each exporter', () => {
  environmentOf({ OTEL_SERVICE_NAME: 'shop-7' });
  const recorded = [redact({ patterns: [/shop-7/] }), redact()].map((redaction) => {
    const { recorder, tracer } = tracerWith(redaction);
    tracer.startSpan('call').end();
    return JSON.stringify(recorder.runs[0]?.extra?.metadata);
  });
  expect(recorded[0]).not.toContain('shop-7');
  expect(recorded[1]).toContain('shop-7');
});

test.each([
  ['a plain key', String.raw`{"a":1,"note":"{\"password\":\"hunter2\"}","note":"b"}`],
  ['a key that ends with a backslash', String.raw`{"a\\":1,"note":"{\"password\":\"hunter2\"}","note":"b"}`],
  ['a key that ends with a quote', String.raw`{"a\"":1,"note":"{\"password\":\"hunter2\"}","note":"b"}`],
])('the sent JSON has no secret that a duplicate key hides from parsers, beside %s', (_, text) => {
  const attributes = { 'openinference.span.kind': 'LLM', 'input.value': text, 'input.mime_type': 'application/json' };
  const { tracer, runs } = noting({ payload: payloadRules(defaultLimits, redact()) });
  tracer.startSpan('call', { attributes }).end();
  expect(runs.at(-1)?.inputs).toContain('"b"');
  expect(runs.at(-1)?.inputs).not.toContain('hunter2');
});

test('a span whose name is empty, or is emptied by redaction, becomes a run with a name', () => {
  const { recorder, tracer } = tracerWith(redact({ patterns: [/^S{8}$/], replace: () => '' }));
  tracer.startSpan('').end();
  tracer.startSpan(SECRET).end();
  const renamed = tracer.startSpan('renamed');
  renamed.updateName(SECRET);
  renamed.end();
  expect(recorder.runs.map(({ name }) => name).sort()).toEqual(['run', 'run', 'span']);
});
