import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { secretPatterns } from '#src/payload/redaction/patterns.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import type { RunContext } from '#src/run/context/context.ts';
import { enterContext } from '#src/run/context/current.ts';
import {
  baggageMember,
  baggageValue,
  type FromHeadersOptions,
  fromHeaders,
  parseBaggage,
  requestHeaders,
  toHeaders,
} from '#src/run/propagation/propagation.ts';
import type { RunRecord } from '#src/run/record.ts';
import { currentRun, startRun, withExporter, withRun } from '#src/run/start-run.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { keeping } from '../otel/set-up.ts';
import { forAll } from '../support/campaign.ts';
import { codePoint } from '../support/code-point.ts';
import { logLines } from '../support/log-lines.ts';
import { LIMITS, makeSink } from './memory-sink.ts';

const ROOT = '0195c0de-0000-7000-8000-000000000001';
const LAST = '0195c0de-0000-7000-8000-000000000002';
const ORDER = `20261120T072240123456Z${ROOT}.20261120T072240123460Z${LAST}`;
const baggageOf = (members: Record<string, string>) =>
  Object.entries(members)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join(',');

/** A sink, and what a run below these headers is in it. */
function below(
  headers: Parameters<typeof fromHeaders>[0],
  capture: Parameters<typeof makeSink>[0] = {},
  options: readonly [options?: FromHeadersOptions] = [{ accept: ['project', 'tags', 'metadata'] }],
) {
  const exporter = makeSink(capture);
  const run = withExporter(exporter, () => withRun(fromHeaders(headers, ...options), () => startRun({ name: 'work' })));
  run.end();
  return { exporter, run, record: exporter.records()[0] };
}

describe('headers', () => {
  test('pass a run to another process: its position, project, tags and metadata', () => {
    const exporter = makeSink();
    const options = { project: 'Läden & mehr', tags: ['a,b', 'ünï'], metadata: { user: { id: 7 }, 'key=,;': 'x' } };
    const root = startRun({ name: 'root', exporter, ...options });
    const child = root.child({ name: 'child', tags: ['c'] });
    const headers = toHeaders(child);
    expect(Object.keys(headers).sort()).toEqual(['baggage', 'runspan-trace']);
    expect(headers['runspan-trace']).toBe(child.dottedOrder);
    for (const value of Object.values(headers)) expect(value).toMatch(/^[!-~]+$/);

    const { run, record } = below(headers);
    expect([run.traceId, run.parentRunId]).toEqual([root.id, child.id]);
    expect(run.dottedOrder.startsWith(`${child.dottedOrder}.`)).toBe(true);
    expect(record).toMatchObject({ session_name: 'Läden & mehr', tags: ['a,b', 'ünï', 'c'] });
    expect(record?.extra?.metadata).toEqual({ user: { id: 7 }, 'key=,;': 'x' });
  });

  test.each([
    [undefined, {}],
    [{}, {}],
    [{ accept: [] }, {}],
    [{ accept: ['project'] }, { session_name: 'shop' }],
    [{ accept: ['tags', 'metadata'] }, { tags: ['a'], extra: { metadata: { user: 7 } } }],
    [{ accept: true }, {}],
    [{ accept: ['projects'] }, {}],
    [{ accept: ['project', 'sampled'] }, {}],
  ])('yield only ids and the sampling decision unless options accept more: %j', (options, expected) => {
    const lines = logLines();
    const members = { 'runspan-project': 'shop', 'runspan-tags': '["a"]', 'runspan-metadata': '{"user":7}' };
    const headers = { 'runspan-trace': ORDER, baggage: baggageOf(members) };
    const { record } = below(headers, {}, [options as FromHeadersOptions]);
    const { trace_id, parent_run_id, session_name, tags, extra } = record as RunRecord;
    expect([trace_id, parent_run_id]).toEqual([ROOT, LAST]);
    expect({ session_name, tags, metadata: extra?.metadata }).toEqual({
      session_name: 'default',
      tags: undefined,
      metadata: undefined,
      ...expected,
      ...('extra' in expected && { extra: undefined, metadata: { user: 7 } }),
    });
    const isWrong = JSON.stringify(options)?.match(/true|projects|sampled/) != null;
    expect(lines).toEqual(isWrong ? [expect.stringContaining('fromHeaders: expected `accept`')] : []);
  });

  test('keep the headers of the request, and other baggage', () => {
    const exporter = makeSink();
    const run = startRun({ name: 'work', exporter });
    const given = { accept: '*/*', Baggage: 'userId=alice;p=1,runspan-project=old', 'Runspan-Trace': 'old' };
    expect(toHeaders(run, given)).toEqual({
      accept: '*/*',
      Baggage: 'userId=alice;p=1,runspan-project=default',
      'Runspan-Trace': run.dottedOrder,
    });
    expect(toHeaders(run, new Headers(given)).baggage).toBe('userId=alice;p=1,runspan-project=default');
    expect(given['Runspan-Trace']).toBe('old');
    expect(toHeaders(undefined, { accept: '*/*' })).toEqual({ accept: '*/*' });
  });

  test('are read from `Headers`, node:http, plain objects and maps, in any case', () => {
    const members = baggageOf({ 'runspan-project': 'shop' });
    for (const headers of [
      new Headers({ 'Runspan-Trace': ORDER, Baggage: members }),
      { 'runspan-trace': ORDER, baggage: ['userId=1', members] },
      { 'RUNSPAN-TRACE': ` ${ORDER} `, BAGGAGE: members },
      new Map([
        ['runspan-trace', ORDER],
        ['baggage', members],
      ]),
    ]) {
      expect(below(headers).record).toMatchObject({ trace_id: ROOT, parent_run_id: LAST, session_name: 'shop' });
    }
  });

  test('of langsmith are read if ours are missing', () => {
    const baggage = baggageOf({
      'langsmith-metadata': '{"user":"u1"}',
      'langsmith-tags': 'a,b',
      'langsmith-project': 'theirs',
      'langsmith-replicas': '[["other",{"apiUrl":"http://evil.example","apiKey":"k"}]]',
      'runspan-project': 'ours',
    });
    const theirs = below({ 'langsmith-trace': ORDER, baggage }).record;
    expect(theirs).toMatchObject({ trace_id: ROOT, parent_run_id: LAST, session_name: 'theirs', tags: ['a', 'b'] });
    expect(theirs?.extra?.metadata).toEqual({ user: 'u1' });
    expect(JSON.stringify(theirs)).not.toContain('evil');
    const both = { 'langsmith-trace': ORDER, 'runspan-trace': ORDER.split('.')[0] as string, baggage };
    expect(below(both).record).toMatchObject({ parent_run_id: ROOT, session_name: 'ours' });
  });

  test('pass the sampling decision', () => {
    const sampling = () => false;
    const root = startRun({ name: 'root', exporter: makeSink({ sampling }) });
    const { exporter, run } = below(toHeaders(root));
    expect([run.traceId, exporter.started, exporter.skipped]).toEqual([root.id, [], 1]);
    expect(
      below(toHeaders(startRun({ name: 'kept', exporter: makeSink() })), { sampling }).exporter.started,
    ).toHaveLength(1);
  });
});

test.each([
  ['runspan-sampled=false,runspan-held=0.25', ['work kept-error 0.25']],
  ['runspan-sampled=false,runspan-held=NaN', ['work kept-error']],
  ['runspan-sampled=false', []],
  ['runspan-sampled=false,runspan-held=1.01', []],
  ['runspan-held=-1', ['work']],
])('with `keep` and the headers %s, of a failed run arrives %j', (baggage, expected) => {
  const { sink, arrived } = keeping();
  const remote = fromHeaders({ 'runspan-trace': ORDER, baggage });
  withExporter(sink, () => withRun(remote, () => startRun({ name: 'work' }).fail('broke')));
  expect(arrived()).toEqual(expected);
});

test('the headers of a held run say that it is left out, also after it is kept', () => {
  const run = startRun({ name: 'root', exporter: keeping(() => 0.25).sink });
  const all = () => [toHeaders(run), { ...requestHeaders(run.context) }];
  const first = all();
  const request = { baggage: 'runspan-sampled=false,runspan-held=0.25', traceparent: expect.stringMatching(/-00$/) };
  expect(first).toMatchObject([{ baggage: `${request.baggage},runspan-project=default` }, request]);
  run.fail('broke');
  expect(all()).toEqual(first);
  expect(first.map((headers) => below(headers).exporter.skipped)).toEqual([1, 1]);
});

describe('tags and metadata of headers', () => {
  const SECRET = `glpat-${'x'.repeat(20)}`;
  const headers = {
    'runspan-trace': ORDER,
    baggage: baggageOf({
      'runspan-tags': JSON.stringify(['a', SECRET]),
      'runspan-metadata': JSON.stringify({ a: SECRET, [SECRET]: 1 }),
    }),
  };
  const payload = { ...LIMITS, redaction: redact({ patterns: secretPatterns }) };

  test('are redacted, including keys', () => {
    const { record } = below(headers, { payload });
    expect(record?.tags).toEqual(['a', '[Redacted]']);
    expect(record?.extra?.metadata).toEqual({ a: '[Redacted]', '[Redacted]': 1 });
  });

  test('are passed only to the exporter of the runs, as another exporter may redact more', () => {
    const [shown, other] = [makeSink(), makeSink({ payload })];
    withExporter(shown, () =>
      withRun(fromHeaders(headers, { accept: ['tags'] }), () => {
        startRun({ name: 'named', exporter: other });
        withExporter(other, () => startRun({ name: 'inside' }));
        startRun({ name: 'here' });
      }),
    );
    expect(JSON.stringify(other.records())).not.toContain(SECRET);
    expect(other.records().map((run) => run.parent_run_id)).toEqual([LAST, LAST]);
    expect(shown.records()[0]).toMatchObject({ name: 'here', tags: ['a', SECRET] });
  });
});

describe('invalid headers', () => {
  test.each([
    ['no headers', {}],
    ['an empty order', { 'runspan-trace': '' }],
    ['no order', { 'runspan-trace': 'hello' }],
    ['an order with a broken segment', { 'runspan-trace': `${ORDER}.x` }],
    ['an order with a month too many', { 'runspan-trace': ORDER.replace('20261120', '20261320') }],
    ['an order in two lines', { 'runspan-trace': [ORDER, ORDER] }],
    ['null', null],
    ['text', 'runspan-trace'],
    ['a number', { 'runspan-trace': 7 }],
  ])('with %s contain no run', (_, headers) => {
    expect(fromHeaders(headers as never)).toBeUndefined();
  });

  test.each([
    [138, true],
    [139, false],
  ])('with an order of %i runs are read: %s', (levels, isRead) => {
    // 58 characters a run and the dots between: 138 runs are 8 141 characters, 139 are 8 200.
    const order = Array.from({ length: levels }, () => ORDER.split('.')[0]).join('.');
    expect(fromHeaders({ 'runspan-trace': order }) !== undefined).toBe(isRead);
  });

  test.each([
    [99, 99],
    [100, 100],
    [101, 100],
  ])('with %i tags lead to %i, and tags of another type are ignored', (given, taken) => {
    const tags = JSON.stringify([7, '', ...Array.from({ length: given }, (_, at) => String(at))]);
    const { record } = below({ 'runspan-trace': ORDER, baggage: baggageOf({ 'runspan-tags': tags }) });
    expect(record?.tags).toHaveLength(taken);
  });

  test('of any kind throw nothing, and do not change `Object.prototype`', () => {
    const text = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.constant(ORDER),
      fc.constant('runspan-metadata=%7B%22__proto__%22%3A1%7D'),
    );
    const value = fc.oneof(text, fc.array(text), fc.anything());
    const headers = fc.oneof(
      fc.record({ 'runspan-trace': value, 'langsmith-trace': value, baggage: value }, { requiredKeys: [] }),
      fc.anything(),
    );
    forAll(300, [headers], (given) => {
      const remote = fromHeaders(given as never);
      withExporter(makeSink(), () => withRun(remote, () => startRun({ name: 'work' }).end()));
      toHeaders(undefined, given as never);
    });
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});

test('a value that is not a run adds no headers, and one line is logged', () => {
  const lines = logLines();
  expect(toHeaders({} as never)).toEqual({});
  expect(lines).toEqual(['warn: toHeaders(run): expected `run` to be a Run; no header is added.']);
});

describe('headers that are too large', () => {
  const entered = (context: Partial<RunContext>) => {
    const { context: own } = startRun({ name: 'work', exporter: makeSink() });
    return enterContext({ ...own, ...context }, toHeaders);
  };

  test('fill the baggage up to 8192 bytes', () => {
    const bytesOf = (length: number) => entered({ metadata: new Map([['k', JSON.stringify('x'.repeat(length))]]) });
    const around = bytesOf(1).baggage?.length as number;
    const fits = 8_192 - around + 1;
    expect(bytesOf(fits).baggage).toHaveLength(8_192);
    expect(bytesOf(fits + 1).baggage).not.toContain('xx');
  });

  test('are not created for a run that is too deep', () => {
    const lines = logLines();
    const segment = `${ORDER.split('.')[0]}.`;
    expect(entered({ dottedOrder: segment.repeat(138).slice(0, -1) })).toHaveProperty('runspan-trace');
    expect(entered({ dottedOrder: segment.repeat(139).slice(0, -1) })).toEqual({});
    expect(lines).toHaveLength(1);
  });
});

test('a promise instead of headers is reported in one line, and its rejection is handled', async () => {
  const lines = logLines();
  const unhandled = unhandledRejections();
  const late = async (): Promise<never> => {
    throw new Error('late');
  };
  expect(fromHeaders(Promise.resolve({ 'runspan-trace': ORDER }) as never)).toBeUndefined();
  expect(fromHeaders({ get: late } as never)).toBeUndefined();
  expect(await unhandled()).toEqual([]);
  expect(lines).toEqual([
    'warn: fromHeaders(headers): expected headers, got a promise; no run is read. Await the promise first.',
  ]);
});

describe('a remote run', () => {
  test('is not the current run, and adds no headers if tracing is off', () => {
    const remote = fromHeaders({ 'runspan-trace': ORDER });
    expect(remote).toMatchObject({ id: LAST, traceId: ROOT, dottedOrder: ORDER });
    expect(withRun(remote, () => currentRun())).toBeUndefined();
    expect(withRun(remote, () => toHeaders())).toEqual({});
  });
});

describe('baggage', () => {
  test('is read with white space and properties, as the specification allows', () => {
    const members = parseBaggage('userId = alice;ttl=3 , serverNode=DF%2028,isProduction=false;a;b=c');
    expect(members.map(({ key }) => key)).toEqual(['userId', 'serverNode', 'isProduction']);
    expect(['userId', 'serverNode', 'isProduction', 'none'].map((key) => baggageValue(members, key))).toEqual([
      'alice',
      'DF 28',
      'false',
      undefined,
    ]);
    expect(members[0]?.text).toBe('userId = alice;ttl=3');
  });

  test.each([
    [63, 63],
    [64, 64],
    [65, 64],
  ])('of %i members: %i are read', (count, read) => {
    const header = Array.from({ length: count }, (_, at) => `k${at}=v`).join(',');
    expect(parseBaggage(header)).toHaveLength(read);
  });

  test.each([
    [8_191, ['a', 'b']],
    [8_192, ['a', 'b']],
    [8_193, ['a']],
  ])('of %i bytes is read up to its last complete member', (bytes, keys) => {
    const header = `a=1,b=${'x'.repeat(bytes - 6)}`;
    expect(parseBaggage(header).map(({ key }) => key)).toEqual(keys);
    expect(parseBaggage(header.slice(4))).toHaveLength(1);
    expect(parseBaggage(`a=${'x'.repeat(8_191)}`)).toEqual([]);
  });

  test('encodes any text in characters that a header allows', () => {
    forAll(100, [fc.string({ unit: 'grapheme', maxLength: 100 })], (value) => {
      const member = baggageMember('key', value);
      expect(member.text).toMatch(/^key=[!-~]*$/);
      expect(member.text).not.toMatch(/[,;"\\ ]/);
      expect(baggageValue(parseBaggage(member.text), 'key')).toBe(value);
    });
    expect(baggageValue([baggageMember('key', 'half \ud800')], 'key')).toBe('half \ufffd');
  });
});
