// Which runs an exporter accepts and refuses at its limits.
import '../support/virtual-timers.ts';

import { describe, expect, it } from 'vitest';
import { PROGRAM_ENDED } from '#src/run/record.ts';
import { addsUp } from '../support/adds-up.ts';
import { advance, delivery, finished, onFlush, settle, until } from '../support/delivery.ts';
import { gate } from '../support/gate.ts';
import { spoolFolder } from '../support/spool.ts';

const MARKER = { runspan: 'left out: the queue was full' };

const padded = (length: number) => ({ inputs: { text: 'x'.repeat(length) } });

/** The backlog bytes of an open run with the payload `padded(length)`. */
async function bytesOf(length: number): Promise<number> {
  const { start, stats } = await delivery({ limits: onFlush });
  start('r', padded(length));
  return stats().backlog.bytes;
}

const MOMENTS = ['waits', 'is under way', 'is sent'] as const;

/** Returns an exporter whose requests wait, and a function that sends its records until a moment. */
async function held(limits: object = {}) {
  const answer = gate<number>();
  const scene = await delivery({ limits: { ...onFlush, ...limits }, reply: () => answer });
  const sent = async (when: (typeof MOMENTS)[number]) => {
    const flushed = when === 'waits' ? undefined : scene.exporter.flush();
    await settle();
    if (when === 'is sent') answer.open(202);
    await settle();
    return [flushed] as const;
  };
  return { ...scene, answer, sent };
}

describe('the queue', () => {
  it.each([
    [2, 0],
    [3, 0],
    [4, 1],
  ])('of 3 runs with %i new traces refuses %i', async (count, refused) => {
    const { wholes, stats } = await delivery({ limits: { ...onFlush, queueRuns: 3 } });
    wholes(count);

    expect(stats()).toMatchObject({
      created: count,
      queued: count - refused,
      droppedByReason: { queue_full: refused },
    });
  });

  it('refuses a complete trace, including runs that start later', async () => {
    const { start, whole, flush, stats, drops } = await delivery({ limits: { ...onFlush, queueRuns: 1 } });
    whole('first');
    const refused = start('refused');
    start('child', {}, refused).end();
    await flush();
    start('late child', {}, refused).end();
    refused.end();

    expect(drops).toEqual(['queue_full refused', 'queue_full child', 'queue_full late child']);
    expect(addsUp(stats())).toBe(true);
  });

  it.each([
    [4, 1],
    [5, 0],
  ])('of 4 runs that contains %i accepts %i more of an accepted trace', async (waiting, taken) => {
    const { start, stats } = await delivery({ limits: { ...onFlush, queueRuns: 4 } });
    const root = start('root');
    for (let count = 1; count < waiting; count++) start('child', {}, root);
    expect(stats()).toMatchObject({ open: waiting, dropped: 0 });
    start('one more', {}, root);

    expect(stats()).toMatchObject({ open: waiting + taken, dropped: 1 - taken });
  });

  it.each([
    [-1, 0],
    [0, 1],
    [1, 1],
  ])('%i bytes above its limit refuses %i of one new trace', async (over, refused) => {
    const bytes = await bytesOf(20_000);
    const { start, stats } = await delivery({ limits: { ...onFlush, queueBytes: bytes - over } });
    start('r', padded(20_000));
    start('new');

    expect(stats()).toMatchObject({ dropped: refused });
  });

  it.each([
    [-4, { a: 1 }],
    [0, MARKER],
  ])('%i bytes above 1.25 times its limit keeps the outputs %j of an end', async (over, outputs) => {
    const bytes = await bytesOf(20_000);
    // A multiple of 4, of which five quarters are whole.
    const padding = 20_000 + ((5 - (bytes % 5)) % 5);
    const held = bytes + padding - 20_000;
    const { start, flush, service } = await delivery({ limits: { ...onFlush, queueBytes: ((held - over) * 4) / 5 } });
    const run = start('r', padded(padding));
    run.end({ a: 1 });
    await flush();

    expect(service.arrivals('r').at(-1)?.fields.outputs).toEqual(outputs);
  });

  it('counts payloads, metadata, errors and attachments, queued and in flight', async () => {
    const { start, exporter, flush, service, stats } = await delivery({ limits: onFlush, reply: () => 'hold' });
    const grows = (change: () => void): number => {
      const before = stats().backlog.bytes;
      change();
      return stats().backlog.bytes - before;
    };
    grows(() => start('first').end());
    const plain = grows(() => start('r').end());
    for (const [least, options, attachment] of [
      [3_000, { inputs: { text: '€'.repeat(1_000) } }],
      [1_000, { metadata: { text: 'x'.repeat(1_000) } }],
      [1_000, {}, Buffer.alloc(1_000)],
    ] as const) {
      const extra = grows(() => {
        const run = start('r', options);
        if (attachment !== undefined) run.attach('a', attachment, 'image/png');
        run.end();
      });
      expect(extra - plain).toBeGreaterThanOrEqual(least);
      expect(extra - plain).toBeLessThan(least + 1_000);
    }
    expect(grows(() => start('r').fail(new Error('x'.repeat(1_000)))) - plain).toBeGreaterThanOrEqual(1_000);
    const { bytes } = stats().backlog;
    void exporter.flush();
    await until(() => service.requests.length === 2);
    // A run with attachments has a request of its own, whose body is kept beside the run until the response arrives.
    const isAttached = ({ body }: { body: Buffer }): boolean => body.includes('attachment.');
    expect(service.requests.map(isAttached).sort()).toEqual([false, true]);
    const attached = service.requests.find(isAttached)?.body.length ?? 0;
    expect(stats().backlog.bytes).toBe(bytes + attached);
    service.reply = () => 202;
    await advance(40_000);
    await flush();
    expect(stats().backlog.bytes).toBe(0);
  });
});

describe('open runs', () => {
  const extra = { runspan_end_reason: 'incomplete' };
  const INCOMPLETE = { error: expect.stringMatching(/^Incomplete: /), extra };

  it.each([
    [2, 0],
    [3, 0],
    [4, 1],
  ])('above a limit of 3 are sent as incomplete, the oldest first: of %i runs, %i', async (count, incomplete) => {
    const { start, flush, service } = await delivery({ limits: { ...onFlush, openRuns: 3 } });
    for (let number = 1; number <= count; number++) start(String(number));
    await flush();
    const ended = service.requests.flatMap(({ arrivals }) => arrivals).filter(({ isEnded }) => isEnded);

    expect(ended.map(({ name }) => name)).toEqual(['1', '2', '3', '4'].slice(0, incomplete));
    for (const { fields } of ended) expect(fields).toMatchObject(INCOMPLETE);
  });

  it('are sent as incomplete after an hour, and not earlier', async () => {
    const { start, service, stats } = await delivery();
    start('old');
    await advance(10_000);
    start('young');
    await advance(3_600_000 - 5_000);

    expect(service.arrivals('old').at(-1)?.fields).toMatchObject(INCOMPLETE);
    expect(service.arrivals('young').map(({ isEnded }) => isEnded)).toEqual([false]);
    expect(stats()).toMatchObject({ open: 2, dropped: 0 });
  });

  it('are refused at the queue limit while the service is down, also with `spill`', async () => {
    const { dir } = spoolFolder();
    const { start, stats } = await delivery({
      limits: { openRuns: 5, queueRuns: 20 },
      options: { durability: 'spill', spoolDir: dir },
      reply: () => 503,
    });
    for (let number = 0; number < 200; number++) {
      start();
      if (number % 10 === 0) await advance(100);
    }
    expect(stats().open).toBeLessThan(60);
    expect(stats().droppedByReason.queue_full).toBe(200 - stats().open);
  });

  it('have no error after their end, even if the end was on disk', async () => {
    const { dir } = spoolFolder();
    const scene = await delivery({
      limits: { openRuns: 1, batchRuns: 1 },
      options: { durability: 'spill', spoolDir: dir },
    });
    const late = scene.start('late');
    scene.start('other');
    await scene.flush();
    expect(scene.service.arrivals('late').at(-1)?.fields.error).toMatch(/^Incomplete/);
    scene.service.reply = () => 503;
    scene.whole();
    await advance(5_000);
    late.end({ answer: 1 });
    await until(() => scene.stats().spooled > 0);
    scene.service.reply = () => 202;
    await until(() => scene.service.arrivals('late').at(-1)?.fields.outputs !== undefined);
    expect(scene.service.arrivals('late').at(-1)?.fields.error).toBe('');
  });

  it.each(MOMENTS)('are sent with their end if the incomplete record %s', async (when) => {
    const { start, flush, service, stats, answer, sent } = await held({ openRuns: 1 });
    const run = start('late', { inputs: { q: 1 } });
    start('other');
    const [flushed] = await sent(when);
    run.end({ a: 1 });
    answer.open(202);
    if (flushed !== undefined) await finished(flushed);
    await flush();

    const arrivals = service.arrivals('late');
    const merged = Object.assign({}, ...arrivals.map(({ fields }) => fields));
    expect(merged).toMatchObject({ inputs: { q: 1 }, outputs: { a: 1 } });
    expect(merged.error ?? '').toBe('');
    expect(stats()).toMatchObject({ created: 2, open: 1, sent: 1, dropped: 0 });
    expect(addsUp(stats())).toBe(true);
  });
});

describe('runs that are open at the end', () => {
  const extra = { runspan_end_reason: 'interrupted' };
  const interrupted = { end_time: expect.any(String), error: PROGRAM_ENDED, extra };

  it.each(MOMENTS)('are interrupted by `close` if the start %s', async (when) => {
    const { answer, sent, ...scene } = await held();
    const run = scene.start('job');
    const [flushed] = await sent(when);
    expect(scene.service.arrivals('job').filter(({ isEnded }) => isEnded)).toEqual([]);
    const closed = scene.exporter.close();
    await settle();
    answer.open(202);
    expect(await finished(Promise.all([closed, flushed]))).toContainEqual({ ok: true, pending: 0 });

    expect(scene.service.arrivals('job').at(-1)?.fields).toMatchObject(interrupted);
    expect(scene.stats()).toMatchObject({ open: 1, dropped: 0 });
    run.end();
    expect(scene.stats()).toMatchObject({ open: 0, droppedByReason: { closed: 1 } });
    expect(addsUp(scene.stats())).toBe(true);
  });

  it.each(['spill', 'write-ahead'] as const)(
    'are interrupted on disk if the service is down: %s',
    async (durability) => {
      const options = { durability, spoolDir: spoolFolder().dir };
      const scene = await delivery({ limits: onFlush, options });
      scene.start('sent');
      await scene.flush();
      scene.service.reply = () => 503;
      scene.start('not sent');
      await scene.close({ timeoutMs: 1 });
      expect(scene.stats()).toMatchObject({ spooled: 2, dropped: 0 });

      scene.service.reply = () => 202;
      const next = await delivery({ service: scene.service, options });
      next.whole();
      await until(() => next.stats().sent === 3);
      for (const name of ['sent', 'not sent'])
        expect(scene.service.arrivals(name).at(-1)?.fields).toMatchObject(interrupted);
    },
  );

  it.each([202, 503])('get their own end if the process survives its signal, also after status %i', async (status) => {
    const { start, exporter, flush, service, stats } = await delivery({ limits: onFlush, reply: () => status });
    const run = start('job');
    start('other');
    await finished(exporter.finish({ timeoutMs: 100 }, true));
    run.end({ answer: 1 });
    service.reply = () => 202;
    await flush();

    const ends = service.arrivals('job').map(({ fields: { error, outputs } }) => ({ error, outputs }));
    // A record that is sent again is the same, also in a batch of its own.
    expect(ends.slice(0, -1).every(({ error }) => error === PROGRAM_ENDED)).toBe(true);
    expect(ends.at(-1)).toEqual({ error: '', outputs: { answer: 1 } });
    expect(stats()).toMatchObject({ created: 2, open: 1, sent: 1 });
  });
});

describe('ready', () => {
  it('resolves once the queue is less than three quarters full', async () => {
    let isUp = false;
    const { exporter, wholes, stats } = await delivery({
      limits: { queueRuns: 8, batchRuns: 1, requestsInFlight: 1 },
      reply: () => (isUp ? 202 : 503),
    });
    wholes(8);
    let sent: number | undefined;
    const ready = exporter.ready().then(() => {
      sent = stats().sent;
    });
    await advance(1_000);
    expect(sent).toBeUndefined();
    isUp = true;
    await finished(ready);

    expect(sent).toBe(3);
  });

  it('lets a job that awaits it record more runs than the queue holds', async () => {
    const { exporter, whole, flush, stats } = await delivery({ limits: { queueRuns: 8, batchRuns: 2 } });
    const job = async (): Promise<void> => {
      for (let run = 0; run < 50; run++) {
        await exporter.ready();
        whole();
      }
    };
    await finished(job());
    await flush();

    expect(stats()).toMatchObject({ created: 50, sent: 50, dropped: 0 });
  });

  it('resolves when the exporter closes', async () => {
    const { exporter, wholes, close } = await delivery({ limits: { queueRuns: 4 }, reply: () => 503 });
    wholes(4);
    const ready = exporter.ready();
    await close({ timeoutMs: 0 });
    await ready;
    await exporter.ready();
  });
});
