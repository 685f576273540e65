import {
  type Context,
  context,
  createContextKey,
  defaultTextMapGetter as getter,
  propagation,
  ROOT_CONTEXT,
  defaultTextMapSetter as setter,
  type TextMapPropagator,
  trace,
} from '@opentelemetry/api';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { startRun, toHeaders, traceable, withRun } from '#src/index.ts';
import { RunPropagator, type RunPropagatorOptions, RunSpanProcessor } from '#src/otel.ts';
import { recordRuns } from '#src/testing.ts';
import { logLines } from '../support/log-lines.ts';
import { below, inSpan, keeping, noting, notingSink, runNamed, setUp, tree } from './set-up.ts';

const ROOT = '0195c0de-0000-7000-8000-000000000001';
const LAST = '0195c0de-0000-7000-8000-000000000002';
const ORDER = `20261120T072240123456Z${ROOT}.20261120T072240123460Z${LAST}`;
const HEADER = { 'runspan-trace': ORDER };
const BAGGAGE = 'runspan-project=shop,runspan-tags=%5B%22a%22%5D,runspan-metadata=%7B%22user%22%3A7%7D';
const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };

const fail = () => {
  throw new Error('no');
};

const orderOf = (depth: number) => new Array(depth).fill(ORDER.split('.')[1]).join('.');

/** Returns the context of a request with these headers and a remote span. */
const extracted = (headers: Record<string, unknown>, given?: RunPropagatorOptions) =>
  new RunPropagator(given).extract(trace.setSpanContext(ROOT_CONTEXT, remote), headers, getter);

const injected = (from: Context = context.active(), carrier: Record<string, unknown> = {}) => {
  new RunPropagator().inject(from, carrier, setter);
  return carrier;
};

/** Returns the context without tracing, as during our own requests. */
const suppressed = () =>
  context.active().setValue(createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING'), true);

test('RunPropagator is a propagator of the API and lists its headers', () => {
  expectTypeOf<RunPropagator>().toExtend<TextMapPropagator>();
  expect(new RunPropagator().fields()).toEqual(['runspan-trace', 'baggage']);
});

describe('inject', () => {
  test('writes the place and the project of the span in the context, with or without a context manager', async () => {
    const { tracer, recorder } = setUp();
    const headers = await inSpan(tracer, 'request', () => injected());
    const { dotted_order } = runNamed(recorder, 'request');
    expect(headers).toEqual({ 'runspan-trace': dotted_order, baggage: 'runspan-project=default' });
    context.disable();
    expect(injected(below(tracer.startSpan('other')))['runspan-trace']).toBe(runNamed(recorder, 'other').dotted_order);
  });

  test('writes the place of a traced function, with or without a span around it', async () => {
    const { tracer, recorder } = setUp();
    const call = (name: string) => traceable(() => injected()['runspan-trace'], { name });
    expect(call('alone')()).toBe(runNamed(recorder, 'alone').dotted_order);
    const order = await inSpan(tracer, 'around', call('inside'));
    expect(order).toBe(runNamed(recorder, 'inside').dotted_order);
    expect(order).toMatch(`${runNamed(recorder, 'around').dotted_order}.`);
  });

  test('writes the sampling decision, and tags and metadata only with `metadata`', () => {
    const exporter = notingSink().sink;
    const run = startRun({ name: 'work', exporter, project: 'shop', tags: ['a'], metadata: { user: 'ada' } });
    setUp();
    withRun(run, () => {
      expect(injected().baggage).toBe('runspan-project=shop');
      const carrier = {};
      new RunPropagator({ metadata: true }).inject(context.active(), carrier, setter);
      expect(carrier).toEqual(toHeaders(run));
      expect(toHeaders(run).baggage).toMatch(/runspan-tags=.*runspan-metadata=/);
    });
    const baggageOf = (sink: typeof exporter) => traceable(() => injected().baggage, { exporter: sink })();
    expect(baggageOf(notingSink({ sampling: () => false }).sink)).toBe('runspan-sampled=false,runspan-project=default');
    expect(baggageOf(keeping(() => 0.25).sink)).toBe('runspan-sampled=false,runspan-held=0.25,runspan-project=default');
  });

  const members = 'runspan-project=default';

  test.each([
    [{ Baggage: 'userId=a%20b;p=1,runspan-project=old' }, { Baggage: `userId=a%20b;p=1,${members}` }],
    [
      { Baggage: 'a=1', baggage: 'b=2' },
      { Baggage: 'a=1', baggage: `b=2,${members}` },
    ],
  ])('keeps the members of %j', async (carrier, expected) => {
    const { tracer } = setUp();
    expect(await inSpan(tracer, 'request', () => injected(undefined, { ...carrier }))).toMatchObject(expected);
  });

  test('keeps the baggage of `Headers`, and of the context if the carrier cannot be read', async () => {
    const { tracer } = setUp();
    await inSpan(tracer, 'request', () => {
      const headers = new Headers({ baggage: 'a=1' });
      new RunPropagator().inject(context.active(), headers, { set: (_, key, value) => headers.set(key, value) });
      expect(headers.get('baggage')).toBe(`a=1,${members}`);
      const written: string[] = [];
      const baggage = propagation.createBaggage({ 'user id': { value: 'a b' }, 'runspan-project': { value: 'old' } });
      const from = propagation.setBaggage(context.active(), baggage);
      new RunPropagator().inject(from, Object.freeze([]), { set: (_, key, value) => written.push(`${key}: ${value}`) });
      expect(written[1]).toBe(`baggage: user id=a%20b,${members}`);
    });
  });

  test('writes nothing without a run or with tracing off or suppressed', async () => {
    expect(injected(ROOT_CONTEXT)).toEqual({});
    const { tracer, recorder } = setUp();
    expect(injected()).toEqual({});
    await inSpan(tracer, 'request', () => expect(injected(suppressed())).toEqual({}));
    recorder.stop();
    await inSpan(tracer, 'off', () => expect(injected()).toEqual({}));
    traceable(() => expect(injected()).toEqual({}))();
  });

  test('writes the extracted run if there is no span, and replaces a header that was written by hand', async () => {
    const { tracer, recorder } = setUp();
    const from = extracted({ ...HEADER, baggage: 'runspan-project=shop' }, { accept: ['project'] });
    expect(injected(from)).toEqual({ ...HEADER, baggage: 'runspan-project=shop' });
    const written = await inSpan(tracer, 'call', () => {
      const byHand = { ...toHeaders() };
      return inSpan(tracer, 'request', () => injected(undefined, byHand)['runspan-trace']);
    });
    expect(written).toBe(runNamed(recorder, 'request').dotted_order);
  });

  test.each([
    [69, []],
    [70, ['warn: RunPropagator: a run is nested too deeply for a header; no header is added']],
  ])('writes or logs %i nested runs', (depth, lines) => {
    const logged = logLines();
    setUp();
    let run = startRun({ name: 'root' });
    for (let level = 1; level < depth; level++) run = run.child({ name: 'deep' });
    expect(run.dottedOrder.length).toBe(depth * 59 - 1);
    expect('runspan-trace' in withRun(run, () => injected())).toBe(lines.length === 0);
    expect(logged).toEqual(lines);
  });

  test.each([
    ['null', null],
    ['text', 'headers'],
    ['a frozen object', Object.freeze({})],
    ['a proxy that throws', new Proxy({}, { set: fail })],
  ])('never throws with the carrier %s', async (_, carrier) => {
    logLines();
    const { tracer } = setUp();
    await inSpan(tracer, 'request', () => new RunPropagator().inject(context.active(), carrier, setter));
  });
});

describe('a span whose parent is remote', () => {
  /** Returns where the run of a span with these headers is, and what it has received. */
  function served(headers: Record<string, unknown>, given?: RunPropagatorOptions) {
    const { tracer, recorder } = setUp({
      processors: [new RunSpanProcessor({ project: 'spans', shouldExport: 'all' })],
    });
    tracer.startSpan('served', {}, extracted(headers, given)).end();
    const { parent_run_id, session_name, tags, extra } = runNamed(recorder, 'served');
    return { parent: parent_run_id, project: session_name, tags, user: extra?.metadata?.user };
  }

  const theirs = { 'langsmith-trace': ORDER, baggage: 'langsmith-project=shop' };
  test.each<[string, Record<string, string>, RunPropagatorOptions['accept'], object]>([
    ['the received run as its parent', { ...HEADER, baggage: BAGGAGE }, [], { parent: LAST, project: 'spans' }],
    [
      'tags that `accept` lists',
      { ...HEADER, baggage: BAGGAGE },
      ['tags'],
      { parent: LAST, project: 'spans', tags: ['a'] },
    ],
    [
      'the project, tags and metadata that `accept` lists',
      { ...HEADER, baggage: BAGGAGE },
      ['project', 'tags', 'metadata'],
      { parent: LAST, project: 'shop', tags: ['a'], user: 7 },
    ],
    [
      '138 runs above it, in 8 192 characters',
      { 'runspan-trace': orderOf(138) },
      [],
      { parent: LAST, project: 'spans' },
    ],
    ['the header of LangSmith', theirs, ['project'], { parent: LAST, project: 'shop' }],
    [
      '`runspan-trace` rather than the header of LangSmith',
      { ...theirs, 'runspan-trace': ORDER.split('.')[0] as string },
      ['project'],
      { parent: ROOT, project: 'spans' },
    ],
  ])('has %s', (_, headers, accept, expected) => {
    expect(served(headers, { accept: accept ?? [] })).toEqual({ tags: undefined, user: undefined, ...expected });
  });

  test('has the trace of the received run, and is above the spans inside it', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('served', {}, extracted(HEADER));
    tracer.startSpan('inside', {}, below(span)).end();
    const { id, dotted_order, trace_id, extra } = runNamed(recorder, 'served');
    expect([trace_id, dotted_order.startsWith(`${ORDER}.`)]).toEqual([ROOT, true]);
    expect(extra?.metadata?.otel).toMatchObject({ parent_span_id: remote.spanId, parent_is_remote: true });
    expect(runNamed(recorder, 'inside')).toMatchObject({ trace_id: ROOT, parent_run_id: id });
  });

  const logged = (what: string) =>
    `warn: RunPropagator: expected \`trust\` to return true or false synchronously, got ${what}; the headers are ignored.`;
  test.each<[string, unknown, boolean, (string | RegExp)?]>([
    ['true', true, true],
    ['false', false, false],
    ['a function that returns true', () => true, true],
    ['a function that returns false', () => false, false],
    ['a function that checks the carrier', (carrier: { from?: string }) => carrier.from === 'us', true],
    ['a function that returns 1', () => 1, false, logged('the number 1')],
    ['a function that returns nothing', () => undefined, false, logged('undefined')],
    ['an async function', async () => true, false, logged('a promise')],
    ['an async function that fails', () => Promise.reject(new Error('no')), false, logged('a promise')],
    ['a function that throws', fail, false, 'warn: RunPropagator.extract failed, the application is not affected: no'],
  ])('follows `trust` if it is %s, and logs an invalid result once', (_, trust, isBelow, line) => {
    const lines = logLines();
    const headers = { ...HEADER, from: 'us' };
    for (let time = 0; time < 2; time++)
      expect(served(headers, { trust } as RunPropagatorOptions).parent).toBe(isBelow ? LAST : undefined);
    expect(lines).toEqual(line === undefined ? [] : [line]);
  });

  test.each<[string, unknown]>([
    ['a missing header', undefined],
    ['an empty header', ''],
    ['an invalid order', 'hello'],
    ['`__proto__`', '__proto__'],
    ['a broken segment', `${ORDER}.x`],
    ['two values', [ORDER, ORDER]],
    ['too many runs', orderOf(139)],
    ['a number', 7],
    ['an object', { toString: () => ORDER }],
  ])('is a root with %s, and the context is unchanged', (_, value) => {
    const from = trace.setSpanContext(ROOT_CONTEXT, remote);
    expect(new RunPropagator().extract(from, { 'runspan-trace': value }, getter)).toBe(from);
    expect(served({ 'runspan-trace': value }).parent).toBeUndefined();
  });

  test.each([
    ['null', null, getter],
    ['undefined', undefined, getter],
    ['text', 'headers', getter],
    ['unreadable', {}, { keys: () => [], get: fail }],
  ])('is a root if the carrier is %s', (_, carrier, reader) => {
    logLines();
    expect(new RunPropagator().extract(ROOT_CONTEXT, carrier, reader)).toBe(ROOT_CONTEXT);
  });

  test('has the received parent with invalid options, which are logged', () => {
    const lines = logLines();
    expect(served(HEADER, { trust: 'all', metadata: 1, other: true } as never).parent).toBe(LAST);
    expect(lines).toHaveLength(3);
  });

  test('is skipped if its trace was sampled out', () => {
    const { tracer, asked } = noting();
    tracer.startSpan('served', {}, extracted({ ...HEADER, baggage: 'runspan-sampled=false' })).end();
    expect(asked).toEqual(['skip']);
  });

  test('is sent to the exporter of its processor', () => {
    const own = recordRuns();
    own.stop();
    const { tracer, recorder } = setUp({
      processors: [new RunSpanProcessor({ exporter: own.exporter, shouldExport: 'all' })],
    });
    tracer.startSpan('served', {}, extracted(HEADER)).end();
    expect(runNamed(own, 'served').parent_run_id).toBe(LAST);
    expect(recorder.runs).toEqual([]);
  });

  test('takes precedence over a run around it, but not over a run inside it', () => {
    const { tracer, recorder } = setUp();
    const from = extracted(HEADER);
    traceable(() => tracer.startSpan('message', {}, from).end(), { name: 'poll' })();
    context.with(from, () => traceable(() => tracer.startSpan('step').end(), { name: 'handle' })());
    expect(runNamed(recorder, 'message').parent_run_id).toBe(LAST);
    expect(runNamed(recorder, 'handle').parent_run_id).toBe(LAST);
    expect(runNamed(recorder, 'step').parent_run_id).toBe(runNamed(recorder, 'handle').id);
  });

  test('is a root if it comes from another message without the header', () => {
    const { tracer, recorder } = setUp();
    const message = trace.setSpanContext(extracted(HEADER), { ...remote, spanId: 'c'.repeat(16) });
    tracer.startSpan('served', {}, new RunPropagator().extract(message, {}, getter)).end();
    const { id, trace_id, parent_run_id } = runNamed(recorder, 'served');
    expect([trace_id, parent_run_id]).toEqual([id, undefined]);
  });

  test('is below its parent if this span is in the same process', () => {
    const { tracer, recorder } = setUp();
    const client = tracer.startSpan('client');
    const from = trace.setSpanContext(ROOT_CONTEXT, { ...client.spanContext(), isRemote: true });
    tracer.startSpan('server', {}, new RunPropagator().extract(from, HEADER, getter)).end();
    client.end();
    expect(tree(recorder)).toEqual(['client', '  server']);
  });
});

test('`runspan-trace` without a remote span is the parent of spans, functions and children of an unknown span', () => {
  const { tracer, recorder } = setUp();
  const from = new RunPropagator().extract(ROOT_CONTEXT, HEADER, getter);
  context.with(from, () => {
    tracer.startSpan('span').end();
    traceable(() => tracer.startSpan('inside').end(), { name: 'run' })();
  });
  tracer.startSpan('child', {}, trace.setSpanContext(from, { ...remote, isRemote: false })).end();
  for (const name of ['span', 'run', 'child']) expect(runNamed(recorder, name).parent_run_id).toBe(LAST);
  expect(runNamed(recorder, 'inside').parent_run_id).toBe(runNamed(recorder, 'run').id);
});
