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
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { startRun, toHeaders, traceable, withRun } from '../../src/index.ts';
import { RunPropagator, type RunPropagatorOptions, RunSpanProcessor } from '../../src/otel.ts';
import { recordRuns } from '../../src/testing.ts';
import { told } from '../support/told.ts';
import { below, inSpan, notingSink, runNamed, setUp, tree } from './set-up.ts';

const ROOT = '0195c0de-0000-7000-8000-000000000001';
const LAST = '0195c0de-0000-7000-8000-000000000002';
const ALL: RunPropagatorOptions = { accept: ['project', 'tags', 'metadata'] };
const ORDER = `20261120T072240123456Z${ROOT}.20261120T072240123460Z${LAST}`;
const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };

/** Returns a dotted order with `depth` runs. */
const orderOf = (depth: number) => new Array(depth).fill(ORDER.split('.')[1]).join('.');

/** Returns the context of a request with these headers and a remote span. */
const extracted = (headers: Record<string, unknown>, given?: RunPropagatorOptions, from = ROOT_CONTEXT) =>
  new RunPropagator(given).extract(trace.setSpanContext(from, remote), headers, getter);

const injected = (from: Context = context.active(), carrier: Record<string, unknown> = {}) => {
  new RunPropagator().inject(from, carrier, setter);
  return carrier;
};

test('RunPropagator is a propagator of the API and lists its headers', () => {
  expectTypeOf<RunPropagator>().toExtend<TextMapPropagator>();
  expect(new RunPropagator().fields()).toEqual(['runspan-trace', 'baggage']);
});

describe('inject', () => {
  test('writes the dotted order and the project of the span', async () => {
    const { tracer, recorder } = setUp();
    const headers = await inSpan(tracer, 'request', () => injected());
    const { dotted_order } = runNamed(recorder, 'request');
    expect(headers).toEqual({ 'runspan-trace': dotted_order, baggage: 'runspan-project=default' });
  });

  test('writes the span of the given context without a context manager', () => {
    const { tracer, recorder } = setUp({ contextManager: false });
    const span = tracer.startSpan('request');
    expect(injected(below(span))['runspan-trace']).toBe(runNamed(recorder, 'request').dotted_order);
  });

  test('writes a traced function, with or without a span around it', async () => {
    const { tracer, recorder } = setUp();
    const call = traceable(() => injected()['runspan-trace'], { name: 'call' });
    expect(call()).toBe(recorder.runs[0]?.dotted_order);
    const order = await inSpan(tracer, 'around', call);
    expect(order).toBe(recorder.runs.at(-1)?.dotted_order);
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
    const { sink } = notingSink({ sampling: () => false });
    traceable(() => expect(injected().baggage).toBe('runspan-sampled=false,runspan-project=default'), {
      exporter: sink,
    })();
  });

  test('keeps other baggage members', async () => {
    const { tracer } = setUp();
    await inSpan(tracer, 'request', () => {
      const members = 'runspan-project=default';
      expect(injected(undefined, { Baggage: 'userId=a%20b;p=1,runspan-project=old' })).toMatchObject({
        Baggage: `userId=a%20b;p=1,${members}`,
      });
      expect(injected(undefined, { Baggage: 'a=1', baggage: 'b=2' })).toMatchObject({ baggage: `b=2,${members}` });
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
    await inSpan(tracer, 'request', () => {
      const key = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');
      expect(injected(context.active().setValue(key, true))).toEqual({});
    });
    recorder.stop();
    await inSpan(tracer, 'off', () => expect(injected()).toEqual({}));
    traceable(() => expect(injected()).toEqual({}))();
  });

  test('writes the extracted run if there is no span', () => {
    setUp();
    const from = extracted({ 'runspan-trace': ORDER, baggage: 'runspan-project=shop' }, { accept: ['project'] });
    expect(injected(from)).toEqual({ 'runspan-trace': ORDER, baggage: 'runspan-project=shop' });
  });

  test.each([
    [69, true],
    [70, false],
  ])('writes %i nested runs: %j', (depth, isWritten) => {
    const warned = vi.spyOn(diagnostics, 'warnOnce').mockReturnValue();
    setUp();
    let run = startRun({ name: 'root' });
    for (let level = 1; level < depth; level++) run = run.child({ name: 'deep' });
    expect(run.dottedOrder.length).toBe(depth * 59 - 1);
    expect('runspan-trace' in withRun(run, () => injected())).toBe(isWritten);
    expect(warned.mock.calls.map(([, line]) => line)).toEqual(
      isWritten ? [] : ['RunPropagator: a run is nested too deeply for a header; no header is added'],
    );
    warned.mockRestore();
  });

  test.each([
    ['null', null],
    ['text', 'headers'],
    ['a frozen object', Object.freeze({})],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          set() {
            throw new Error('no');
          },
        },
      ),
    ],
  ])('never throws with the carrier %s', async (_, carrier) => {
    const warned = vi.spyOn(diagnostics, 'warnOnce').mockReturnValue();
    const { tracer } = setUp();
    await inSpan(tracer, 'request', () => new RunPropagator().inject(context.active(), carrier, setter));
    warned.mockRestore();
  });
});

describe('a span whose parent is remote', () => {
  test('has the received project, tags and metadata only if `accept` lists them', () => {
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ project: 'spans' })] });
    const baggage = 'runspan-project=shop,runspan-tags=%5B%22a%22%5D,runspan-metadata=%7B%22user%22%3A7%7D';
    tracer.startSpan('plain', {}, extracted({ 'runspan-trace': ORDER, baggage })).end();
    tracer.startSpan('tagged', {}, extracted({ 'runspan-trace': ORDER, baggage }, { accept: ['tags'] })).end();
    expect(runNamed(recorder, 'plain')).toMatchObject({ trace_id: ROOT, parent_run_id: LAST, session_name: 'spans' });
    expect(runNamed(recorder, 'plain').tags ?? []).toEqual([]);
    expect(runNamed(recorder, 'plain').extra?.metadata).not.toHaveProperty('user');
    expect(runNamed(recorder, 'tagged')).toMatchObject({ session_name: 'spans', tags: ['a'] });
  });

  test('is a child of the received run, with its trace, project, tags and metadata', () => {
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ project: 'spans' })] });
    const baggage = `runspan-project=shop,runspan-tags=${encodeURIComponent('["a"]')},runspan-metadata=${encodeURIComponent('{"user":7}')}`;
    const span = tracer.startSpan('served', {}, extracted({ 'runspan-trace': ORDER, baggage }, ALL));
    tracer.startSpan('inside', {}, below(span)).end();
    span.end();
    const served = runNamed(recorder, 'served');
    expect(served).toMatchObject({
      trace_id: ROOT,
      parent_run_id: LAST,
      session_name: 'shop',
      tags: ['a'],
      extra: { metadata: { user: 7, otel: { parent_span_id: remote.spanId, parent_is_remote: true } } },
    });
    expect(served.dotted_order.startsWith(`${ORDER}.`)).toBe(true);
    expect(runNamed(recorder, 'inside')).toMatchObject({ trace_id: ROOT, parent_run_id: served.id });
  });

  test('may be below 138 runs, in 8 192 characters', () => {
    const { tracer, recorder } = setUp();
    tracer.startSpan('served', {}, extracted({ 'runspan-trace': orderOf(138) })).end();
    expect(runNamed(recorder, 'served').parent_run_id).toBe(LAST);
  });

  test('reads the header of LangSmith if `runspan-trace` is missing', () => {
    const { tracer, recorder } = setUp();
    const theirs = { 'langsmith-trace': ORDER, baggage: 'langsmith-project=shop' };
    tracer.startSpan('theirs', {}, extracted(theirs, ALL)).end();
    tracer.startSpan('both', {}, extracted({ ...theirs, 'runspan-trace': ORDER.split('.')[0] }, ALL)).end();
    expect(runNamed(recorder, 'theirs')).toMatchObject({ parent_run_id: LAST, session_name: 'shop' });
    expect(runNamed(recorder, 'both')).toMatchObject({ parent_run_id: ROOT, session_name: 'default' });
  });

  test('is skipped if its trace was sampled out', () => {
    const { sink, asked } = notingSink();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    tracer.startSpan('served', {}, extracted({ 'runspan-trace': ORDER, baggage: 'runspan-sampled=false' })).end();
    expect(asked).toEqual(['skip']);
  });

  test('is sent to the exporter of its processor', () => {
    const own = recordRuns();
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ exporter: own.exporter })] });
    tracer.startSpan('served', {}, extracted({ 'runspan-trace': ORDER })).end();
    expect(runNamed(own, 'served').parent_run_id).toBe(LAST);
    expect(recorder.runs).toEqual([]);
  });

  test('takes precedence over a run around it, but not over a run inside it', () => {
    const { tracer, recorder } = setUp();
    const from = extracted({ 'runspan-trace': ORDER });
    traceable(() => tracer.startSpan('message', {}, from).end(), { name: 'poll' })();
    context.with(from, () => traceable(() => tracer.startSpan('step').end(), { name: 'handle' })());
    expect(runNamed(recorder, 'message').parent_run_id).toBe(LAST);
    expect(runNamed(recorder, 'handle').parent_run_id).toBe(LAST);
    expect(runNamed(recorder, 'step').parent_run_id).toBe(runNamed(recorder, 'handle').id);
  });

  test('is a root if it comes from another message without the header', () => {
    const { tracer, recorder } = setUp();
    const request = extracted({ 'runspan-trace': ORDER });
    const message = trace.setSpanContext(request, { ...remote, spanId: 'c'.repeat(16) });
    tracer.startSpan('served', {}, new RunPropagator().extract(message, {}, getter)).end();
    const { id, trace_id, parent_run_id } = runNamed(recorder, 'served');
    expect([trace_id, parent_run_id]).toEqual([id, undefined]);
  });

  test('is below its parent if this span is in the same process', () => {
    const { tracer, recorder } = setUp();
    const client = tracer.startSpan('client');
    const from = trace.setSpanContext(ROOT_CONTEXT, { ...client.spanContext(), isRemote: true });
    tracer.startSpan('server', {}, new RunPropagator().extract(from, { 'runspan-trace': ORDER }, getter)).end();
    client.end();
    expect(tree(recorder)).toEqual(['client', '  server']);
  });
});

describe('`runspan-trace` without a remote span', () => {
  test('is the parent of a span and of a traced function', () => {
    const { tracer, recorder } = setUp();
    const from = new RunPropagator().extract(ROOT_CONTEXT, { 'runspan-trace': ORDER }, getter);
    context.with(from, () => {
      tracer.startSpan('span').end();
      traceable(() => tracer.startSpan('inside').end(), { name: 'run' })();
    });
    expect(runNamed(recorder, 'span').parent_run_id).toBe(LAST);
    expect(runNamed(recorder, 'run').parent_run_id).toBe(LAST);
    expect(runNamed(recorder, 'inside').parent_run_id).toBe(runNamed(recorder, 'run').id);
  });

  test('is the parent of the children of an unknown span', () => {
    const { tracer, recorder } = setUp();
    const from = new RunPropagator().extract(ROOT_CONTEXT, { 'runspan-trace': ORDER }, getter);
    const unknown = trace.setSpanContext(from, { ...remote, isRemote: false });
    tracer.startSpan('inside', {}, unknown).end();
    expect(runNamed(recorder, 'inside').parent_run_id).toBe(LAST);
  });
});

describe('extract', () => {
  test.each<[string, unknown, boolean]>([
    ['true', true, true],
    ['false', false, false],
    ['a function that returns true', () => true, true],
    ['a function that returns false', () => false, false],
    ['a function that returns another value', () => 1, false],
    ['an async function', async () => true, false],
    ['an async function that fails', () => Promise.reject(new Error('no')), false],
    [
      'a function that throws',
      () => {
        throw new Error('no');
      },
      false,
    ],
    ['a function that checks the carrier', (carrier: { from?: string }) => carrier.from === 'us', true],
  ])('follows `trust` if it is %s', (_, trust, isBelow) => {
    const warned = vi.spyOn(diagnostics, 'warnOnce').mockReturnValue();
    const { tracer, recorder } = setUp();
    const headers = { 'runspan-trace': ORDER, from: 'us' };
    tracer.startSpan('served', {}, extracted(headers, { trust } as RunPropagatorOptions)).end();
    expect(runNamed(recorder, 'served').parent_run_id).toBe(isBelow ? LAST : undefined);
    warned.mockRestore();
  });

  test.each<[string, () => unknown]>([
    ['a promise', async () => true],
    ['the number 1', () => 1],
    ['undefined', () => undefined],
  ])('logs once that `trust` returned %s', (what, trust) => {
    const lines = told();
    setUp();
    const options = { trust } as RunPropagatorOptions;
    for (let time = 0; time < 2; time++) extracted({ 'runspan-trace': ORDER }, options);
    expect(lines).toEqual([
      `warn: RunPropagator: expected \`trust\` to return true or false synchronously, got ${what}; the headers are ignored.`,
    ]);
  });

  test('does not log that `trust` returned false', () => {
    const lines = told();
    setUp();
    extracted({ 'runspan-trace': ORDER }, { trust: () => false });
    expect(lines).toEqual([]);
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
  ])('returns the same context for %s', (_, value) => {
    const { tracer, recorder } = setUp();
    const from = trace.setSpanContext(ROOT_CONTEXT, remote);
    const after = new RunPropagator().extract(from, { 'runspan-trace': value }, getter);
    expect(after).toBe(from);
    tracer.startSpan('served', {}, after).end();
    expect(runNamed(recorder, 'served').parent_run_id).toBeUndefined();
  });

  test.each([
    ['null', null],
    ['undefined', undefined],
    ['text', 'headers'],
  ])('does not throw if the carrier is %s', (_, carrier) => {
    expect(new RunPropagator().extract(ROOT_CONTEXT, carrier, getter)).toBe(ROOT_CONTEXT);
  });

  test('does not throw if the getter throws', () => {
    const throwing = {
      keys: () => [],
      get: () => {
        throw new Error('no');
      },
    };
    expect(new RunPropagator().extract(ROOT_CONTEXT, {}, throwing)).toBe(ROOT_CONTEXT);
  });

  test('invalid options are logged and ignored', () => {
    const warned = vi.spyOn(diagnostics, 'warnOnce').mockReturnValue();
    const { tracer, recorder } = setUp();
    const options = { trust: 'all', metadata: 1, other: true } as never;
    tracer.startSpan('served', {}, extracted({ 'runspan-trace': ORDER }, options)).end();
    expect(runNamed(recorder, 'served').parent_run_id).toBe(LAST);
    expect(warned).toHaveBeenCalledTimes(3);
    warned.mockRestore();
  });
});

test('the header of the propagator replaces an earlier header', async () => {
  const { tracer, recorder } = setUp();
  const served = await inSpan(tracer, 'call', () => {
    const byHand = toHeaders()['runspan-trace'];
    return inSpan(tracer, 'request', () => [byHand, injected()['runspan-trace']]);
  });
  tracer.startSpan('served', {}, extracted({ 'runspan-trace': served })).end();
  expect(runNamed(recorder, 'served').parent_run_id).toBe(runNamed(recorder, 'request').id);
});
