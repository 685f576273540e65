// Runs that are written into a request body when they end, and what happens when the service does not accept the body.
import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type EncodedRun, mainJson } from '#src/run/encoded-run.ts';
import type { RunOptions } from '#src/run/run-options.ts';
import type { LightSink } from '#src/run/sink.ts';
import { addsUp } from '../support/adds-up.ts';
import type { Arrival } from '../support/arrivals.ts';
import { forAllAsync } from '../support/campaign.ts';
import { advance, type Delivery, delivery, finished, onFlush, settle, until } from '../support/delivery.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { gate } from '../support/gate.ts';
import type { IngestRequest, Verdict } from '../support/scripted-service.ts';

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', '€', '"\\\u2028', '\ud800', '--runspan-', '\r\n\r\n--', '12345678901234567890'),
);
const fields = fc.dictionary(text, fc.oneof(text, fc.double({ noNaN: true }), fc.constant(null)), { maxKeys: 4 });

interface Given {
  readonly options: Partial<RunOptions>;
  readonly end: Record<string, unknown> | string;
  readonly isEvent: boolean;
}

const given: fc.Arbitrary<Given> = fc.record({
  options: fc.record(
    {
      id: fc.uuid({ version: 7 }),
      name: text,
      inputs: fields,
      tags: fc.array(text, { maxLength: 3 }),
      metadata: fields,
      runType: fc.constantFrom('chain', 'llm', 'other'),
      project: fc.oneof(text, fc.record({ id: fc.uuid({ version: 4 }) })),
      referenceExampleId: fc.uuid({ version: 4 }),
    },
    { requiredKeys: ['id', 'name'] },
  ),
  end: fc.oneof(fields, text),
  isEvent: fc.boolean(),
});

/** What the service answers to each request. After the last, it accepts everything. */
const script = (...others: Verdict[]): fc.Arbitrary<Verdict[]> =>
  fc.array(fc.constantFrom<Verdict>(202, 400, 418, 500, 503, 'reset', ...others), { maxLength: 9 });

function record({ start }: Delivery, { options, end, isEvent }: Given): void {
  const run = start('run', { ...options, startTime: 1_700_000_000_000 } as Partial<RunOptions>);
  if (isEvent) run.event('event', { options: options.name });
  if (typeof end === 'string') run.fail(end, { endTime: 1_700_000_001_000 });
  else run.end(end, { endTime: 1_700_000_001_000 });
}

/** What the service has accepted of each run. The times of events and the stack of an error differ between two runs. */
class Accepted {
  readonly #runs = new Map<string, Arrival['fields']>();

  add({ arrivals }: IngestRequest): void {
    for (const { id, fields } of arrivals) this.#runs.set(id, { ...this.#runs.get(id), ...fields });
  }

  get runs(): unknown[] {
    return [...this.#runs].sort().map(([id, { events, error, ...fields }]) => {
      return [id, { ...fields, events: events?.length, error: error?.split('\n')[0] }];
    });
  }
}

describe('a run that is written when it ends', () => {
  it('arrives as if it had waited in the queue, whatever the service responds', async () => {
    const runs = fc.uniqueArray(given, { minLength: 1, maxLength: 9, selector: ({ options }) => options.id });
    await forAllAsync(60, [runs, script(404, 409, 413)], async (all, verdicts) => {
      const folder = temporaryFolder();
      // With a spool, every run waits in the queue.
      const ways = [{}, { durability: 'spill', spoolDir: folder.path } as const];
      const results: unknown[] = [];
      for (const options of ways) {
        const accepted = new Accepted();
        const reply = (request: IngestRequest, at: number): Verdict => {
          const verdict = verdicts[at] ?? 202;
          if (verdict === 202) accepted.add(request);
          return verdict;
        };
        const limits = onFlush;
        const way = await delivery({ limits, reply, options });
        for (const one of all) record(way, one);
        void way.exporter.flush();
        await until(() => way.stats().sent + way.stats().dropped === all.length);
        results.push([accepted.runs, way.service.routes, way.drops]);
        await way.close();
      }
      folder.remove();
      expect(results[0]).toEqual(results[1]);
    });
  });

  it('is sent with the same bytes again, and its counters add up after every request', async () => {
    const names = fc.array(text, { minLength: 1, maxLength: 6 });
    await forAllAsync(60, [fc.array(names, { minLength: 1, maxLength: 4 }), script()], async (batches, verdicts) => {
      const sums: boolean[] = [];
      const bodies = new Map<string, Set<string>>();
      const way = await delivery({
        limits: { lingerMs: 0, batchRuns: 4 },
        reply: ({ body, arrivals }, at) => {
          const ids = arrivals.map(({ id }) => id).join();
          bodies.set(ids, (bodies.get(ids) ?? new Set()).add(body.toString('latin1')));
          sums.push(addsUp(way.stats()));
          return verdicts[at] ?? 202;
        },
      });
      for (const batch of batches) {
        for (const name of batch) way.whole(name);
        sums.push(addsUp(way.stats()));
        await settle();
      }
      await until(() => way.stats().queued + way.stats().inFlight === 0);
      sums.push(addsUp(way.stats()));
      expect(sums).not.toContain(false);
      expect([...bodies.values()].map(({ size }) => size)).toEqual([...bodies].map(() => 1));
      expect(way.stats().backlog.bytes).toBe(0);
    });
  });

  it('can be read until the turn of its end is over', async () => {
    const { start } = await delivery();
    const run = start('failed', { inputs: { question: 'tea' }, metadata: { plan: 'free' } });
    run.set({ outputs: { partial: true } });
    run.fail('no answer');
    await Promise.resolve();
    expect([run.inputs, run.outputs, run.metadata, run.error]).toEqual([
      { question: 'tea' },
      { partial: true },
      { plan: 'free' },
      'no answer',
    ]);
  });

  it('is waited for by a flush that begins after its end, but not one that ends later', async () => {
    const first = gate<number>();
    const { whole, exporter, service } = await delivery({
      limits: { lingerMs: 1_000_000 },
      reply: (_, at) => (at === 0 ? first : 'hold'),
    });
    whole('before');
    let isFlushed = false;
    void exporter.flush().then(() => {
      isFlushed = true;
    });
    await settle();
    whole('after');
    await settle();
    expect(service.batches).toEqual([['whole before'], ['whole after']]);
    expect(isFlushed).toBe(false);
    first.open(202);
    await settle();
    expect(isFlushed).toBe(true);
  });

  it('that is older than `ageMs` is dropped, and not the younger runs of its request', async () => {
    const scene = await delivery({ limits: { ...onFlush, ageMs: 10_000 }, reply: () => 503 });
    scene.whole('old');
    await advance(9_000);
    scene.whole('young');
    void scene.exporter.flush({ timeoutMs: 3_000 });
    await advance(3_000);
    await until(() => scene.drops.length > 0);
    expect(scene.drops).toEqual(['expired old']);
    expect(scene.stats()).toMatchObject({ dropped: 1, inFlight: 1 });
  });
});

/** Allocations of at least this many bytes fail until the returned function is called. */
function shortOfMemory(bytesMin: number): () => void {
  const { allocUnsafeSlow, from } = Buffer;
  const failFrom = (bytes: number): void => {
    if (bytes >= bytesMin) throw new RangeError('Array buffer allocation failed');
  };
  const allocation = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementation((bytes) => {
    failFrom(bytes);
    return allocUnsafeSlow(bytes);
  });
  const copy = vi.spyOn(Buffer, 'from').mockImplementation((...given: unknown[]) => {
    if (Buffer.isBuffer(given[0])) failFrom(given[0].length);
    return Reflect.apply(from, Buffer, given);
  });
  return () => [allocation, copy].forEach((spy) => void spy.mockRestore());
}

function startLight({ exporter }: Delivery, begin: () => void = () => {}): LightSink {
  const light = exporter.light as LightSink;
  light.start({ parentRunId: undefined, startedAtMs: 0, isLight: true, begin });
  return light;
}

describe('if memory is short, a run arrives', () => {
  const KIB = 1024;

  it.each([-60, -30, 0, 20])('although its body cannot grow, with %i free bytes', async (freeBytes) => {
    const { whole, flush, stats, service } = await delivery({ limits: onFlush });
    const text = (length: number) => ({ inputs: { text: 'x'.repeat(length) } });
    whole('one', text(200 * KIB));
    await flush();
    const { plainBytes } = service.requests[0] as IngestRequest;
    const restore = shortOfMemory(300 * KIB);
    whole('two', text(456 * KIB - plainBytes - freeBytes));
    const isFlushed = await flush();
    restore();
    expect([isFlushed, stats()]).toMatchObject([{ ok: true }, { sent: 2, backlog: { bytes: 0 } }]);
  });

  it('although its body cannot be copied', async () => {
    const { whole, exporter, stats } = await delivery({ limits: onFlush });
    whole('run', { inputs: { text: 'x'.repeat(10 * KIB) } });
    stats();
    const restore = shortOfMemory(10 * KIB);
    const flushed = exporter.flush();
    await settle();
    restore();
    expect([await finished(flushed), stats()]).toMatchObject([{ ok: true }, { sent: 1 }]);
  });

  it('although a body for a span without a record cannot begin', async () => {
    const scene = await delivery({ limits: onFlush });
    const { id, inputs, outputs, events, ...record } = ended(makeRun({ name: 'light' }));
    const main = mainJson({ id, ...record } as EncodedRun, true);
    startLight(scene).end({ id, startedAtMs: 0, main, inputs, outputs, events });
    const restore = shortOfMemory(100 * KIB);
    scene.stats();
    restore();
    expect([await scene.flush(), scene.stats()]).toMatchObject([{ ok: true }, { open: 0, sent: 1 }]);
  });
});

it('a span that cannot become a record does not hinder the flush of others', async () => {
  const scene = await delivery({ limits: onFlush });
  startLight(scene, () => {
    throw new Error('no record');
  });
  scene.whole('other');
  await scene.flush();
  expect(scene.service.batches).toEqual([['whole other']]);
});

describe('while the endpoint is closed', () => {
  it('`ready` resolves when compressed bodies leave room', async () => {
    const { start, exporter, service } = await delivery({
      limits: { batchBytes: 2 ** 20, queueBytes: 4 * 2 ** 20, requestsInFlight: 1 },
      reply: () => 503,
    });
    const inputs = { text: 'the history of a conversation '.repeat(4_000) };
    for (let runs = 0; runs < 34; runs++) start('run', { inputs }).end();
    let isReady = false;
    void exporter.ready().then(() => {
      isReady = true;
    });
    await settle();
    await advance(10);
    expect([isReady, service.requests.length]).toEqual([true, 1]);
  });

  it('bodies are kept compressed, each probe carries one run, and every run arrives unchanged', async () => {
    let verdict = 503;
    const { start, exporter, stats, service } = await delivery({
      limits: { batchBytes: 2 ** 20 },
      reply: () => verdict,
    });
    const texts = Array.from({ length: 60 }, (_, at) => `${at} ${'the history of a conversation '.repeat(4_000)}`);
    for (const [at, one] of texts.entries()) {
      start(String(at), { inputs: { text: one } }).end({ at });
      await advance(100);
    }
    const plainBytes = texts.reduce((sum, { length }) => sum + length, 0);
    await advance(30_000);
    // One body is open, and one run is a probe.
    expect(stats().backlog.bytes).toBeLessThan(plainBytes / 4);
    expect(service.batches.slice(1).every(({ length }) => length === 1)).toBe(true);
    verdict = 202;
    expect(await finished(exporter.flush())).toEqual({ ok: true, pending: 0 });
    for (const [at, one] of texts.entries()) {
      expect(service.arrivals(String(at)).at(-1)?.fields).toMatchObject({ inputs: { text: one }, outputs: { at } });
    }
    expect(stats()).toMatchObject({ sent: 60, dropped: 0, backlog: { bytes: 0 } });
  });
});
