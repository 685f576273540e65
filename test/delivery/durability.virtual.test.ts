// Which runs `spill` and `write-ahead` write to disk, and when.
import '../support/virtual-timers.ts';

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import type { Arrival } from '../support/arrivals.ts';
import { forAllAsync } from '../support/campaign.ts';
import { codePoint } from '../support/code-point.ts';
import { advance, delivery, finished, settle, until } from '../support/delivery.ts';
import { fail } from '../support/memory-fs.ts';
import { machine } from '../support/processes.ts';
import { testFolder } from '../support/test-folder.ts';
import { virtualClock } from '../support/virtual-timers.ts';

/** The first request gets no answer, and no other is sent. */
const oneHangs = { batchRuns: 1, requestsInFlight: 1, requestTimeoutMs: 2_000_000_000 };

const writeAhead = { durability: 'write-ahead' } as const;

describe('with spill, ended runs go to disk', () => {
  it.each([
    [4, 'none'],
    [5, 'none'],
    [6, 'some'],
  ])('when the queue is more than half full: of 10, with %i runs, %s', async (count, which) => {
    const { start, segments } = machine();
    const { whole, wholes, stats } = await start({
      limits: { ...oneHangs, queueRuns: 10 },
      reply: () => 'hold',
    });
    whole('under way');
    await settle();
    wholes(count);
    await settle();

    expect(segments().length > 0).toBe(which === 'some');
    expect(stats()).toMatchObject({ created: count + 1, inFlight: 1, dropped: 0 });
    expect(addsUp(stats())).toBe(true);
  });

  it.each([
    [4_999, 0],
    [5_000, 1],
  ])('once the service has been unavailable for 5 s: after %i ms, %i', async (ms, spooled) => {
    const { whole, stats } = await machine().start({
      limits: { batchRuns: 1, requestsInFlight: 1, retryDelayMs: 60_000, retryDelayMaxMs: 60_000 },
      reply: () => 429,
    });
    whole('fails');
    await settle();
    await advance(ms);
    whole('later');
    await settle();

    expect(stats().spooled).toBe(spooled);
  });

  it('in groups if they are recorded one by one during an outage', async () => {
    const { disk, start, segments } = machine();
    const { whole, stats } = await start({ limits: oneHangs, reply: () => 'reset' });
    whole();
    await advance(6_000);
    const { length } = segments();
    for (let count = 0; count < 50; count++) {
      whole();
      await advance(100);
    }
    await advance(2_000);

    expect(segments().length - length).toBeLessThanOrEqual(7);
    expect(stats().spooled).toBeGreaterThan(40);
    expect(disk.bytes).toBeGreaterThan(0);
  });

  it('up to `spoolBytes`, and the rest stays in memory', async () => {
    const { disk, start } = machine();
    const { wholes, stats, lines } = await start({
      limits: { ...oneHangs, queueRuns: 4, spoolBytes: 3_000 },
      reply: () => 'hold',
    });
    wholes(12);
    await settle();
    const { spooled, queued, inFlight, dropped } = stats();

    expect(spooled).toBeGreaterThan(0);
    expect(queued + inFlight).toBeGreaterThan(0);
    expect(spooled + queued + inFlight + dropped).toBe(12);
    expect(disk.bytes).toBeLessThanOrEqual(3_000 + 512);
    expect(lines.join()).toMatch(/has reached its limit of \d+ bytes/);
  });
});

describe('what is on disk', () => {
  it('is delivered before a flush resolves, once the service responds again, and leaves no file', async () => {
    const { start, segments } = machine();
    const { wholes, whole, flush, service, stats } = await start({ limits: { batchRuns: 5 }, reply: () => 503 });
    whole('first');
    await advance(6_000);
    wholes(20);
    await advance(2_000);
    expect(segments()).not.toEqual([]);
    expect(await flush({ timeoutMs: 0 })).toEqual({ ok: false, pending: 21 });
    service.reply = () => 202;

    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(stats()).toMatchObject({ created: 21, recovered: 0, sent: 21, spooled: 0, dropped: 0 });
    expect(segments()).toEqual([]);
    expect(service.arrivals('7').at(-1)).toMatchObject({ op: 'post', isEnded: true });
  });

  it('counts as corrupt if it is damaged or deleted, and delays no flush', async () => {
    for (const harm of ['damage', 'delete'] as const) {
      const { disk, start, segments } = machine();
      const { whole, flush, service, stats, drops } = await start({
        reply: () => ({ status: 503, headers: { 'retry-after': '60' } }),
      });
      whole('first');
      await advance(6_000);
      whole('second');
      await advance(2_000);
      expect(stats().spooled).toBeGreaterThan(0);
      if (harm === 'delete') disk.wipe();
      else for (const path of segments()) disk.damage(path);
      service.reply = () => 202;

      expect(await flush({ timeoutMs: 70_000 })).toEqual({ ok: true, pending: 0 });
      expect(stats().sent + stats().dropped).toBe(2);
      expect(drops.map((drop) => drop.split(' ')[0])).toContain('corrupt');
    }
  });

  it.each([
    [50_000, 'sent'],
    [70_000, 'dropped'],
  ] as const)('for %i ms is %s with a `spoolAgeMs` of 60 000', async (ms, place) => {
    const { start } = machine();
    const { whole, service, stats } = await start({
      limits: { batchRuns: 1, spoolAgeMs: 60_000, retryDelayMaxMs: 1_000 },
      reply: ({ names }) => (names[0] === 'whole first' ? 202 : 503),
    });
    whole('first');
    await settle();
    whole('bad');
    await advance(6_000);
    whole('kept');
    await advance(ms);
    service.reply = () => 202;
    await until(() => stats().sent + stats().dropped === 3);

    expect(stats()[place]).toBeGreaterThanOrEqual(2);
  });
});

it('with write-ahead, each record is on disk when the call returns, and deleted once the service has accepted it', async () => {
  const { disk, start, segments } = machine();
  const process = await start({ options: writeAhead });
  const run = process.start('ask', { inputs: { q: 'canary-start' } });
  expect(disk.text).toContain('canary-start');
  run.end({ a: 'canary-end' });
  expect(disk.text).toContain('canary-end');
  await process.flush();

  expect(segments()).toEqual([]);
  expect(process.stats()).toMatchObject({ sent: 1, spooled: 0 });
});

describe('an exporter that closes', () => {
  it('writes runs again if their file was deleted', async () => {
    const { disk, start, deliverRest } = machine();
    const first = await start({ options: writeAhead, reply: () => 'hold' });
    first.whole('before');
    disk.wipe();
    first.whole('after');
    first.exit();
    expect((await deliverRest()).stats()).toMatchObject({ recovered: 2, sent: 3, dropped: 0 });
  });

  it('keeps unsent runs on disk, and flushes return that they are not delivered', async () => {
    const { start, deliverRest } = machine();
    const first = await start({ limits: { batchRuns: 1, requestsInFlight: 1 }, reply: () => 'hold' });
    first.wholes(3);
    await settle();
    const waits = first.exporter.flush();
    const closed = first.exporter.close({ timeoutMs: 0 });
    await settle();
    void first.exporter.flush({ timeoutMs: 1 });
    expect(await finished(closed)).toEqual({ ok: false, pending: 3 });
    expect(await finished(waits)).toEqual({ ok: false, pending: 3 });
    expect(await first.flush({ timeoutMs: 0 })).toEqual({ ok: false, pending: 3 });
    await settle();
    expect(first.stats()).toMatchObject({ spooled: 3, queued: 0, inFlight: 0, dropped: 0 });
    first.kill();

    const next = await deliverRest();
    expect(next.stats()).toMatchObject({ recovered: 3, sent: 4 });
  });

  it('counts the later end of a run on disk as dropped', async () => {
    const { start } = machine();
    const process = await start({ reply: () => 'hold' });
    const run = process.start();
    await process.close({ timeoutMs: 0 });
    expect(process.stats()).toMatchObject({ spooled: 1, open: 0 });
    run.end();

    expect(process.stats()).toMatchObject({ spooled: 0, droppedByReason: { closed: 1 } });
    expect(addsUp(process.stats())).toBe(true);
  });
});

it('a process that ends with an almost full disk keeps as many runs as fit, the oldest first, and logs the number of the others', async () => {
  const { disk, start, deliverRest } = machine();
  disk.bytesMax = 50_000;
  const process = await start({ reply: () => 'hold' });
  process.wholes(1_000);
  process.exit();
  const { spooled, dropped } = process.stats();
  expect(spooled + dropped).toBe(1_000);
  expect(spooled).toBeGreaterThan(20);
  expect(process.lines.join()).toMatch(new RegExp(`exits with undelivered runs \\(${dropped}\\)`));
  // Less than one of them takes.
  expect(disk.bytesMax - disk.bytes).toBeLessThan(1_000);
  disk.bytesMax = 1e9;

  const { service } = await deliverRest();
  const names = new Set(service.batches.flat());
  expect([...Array(spooled).keys()].filter((at) => !names.has(`whole ${at + 1}`))).toEqual([]);
});

it('a process that ends with a full disk tells of which lost runs the start is on disk', async () => {
  const { disk, start, deliverRest } = machine();
  const process = await start({ options: { durability: 'write-ahead' }, reply: () => 'hold' });
  const run = process.start();
  process.start('open');
  disk.obstacle = (_, path) => fail('ENOSPC', path);
  run.end();
  process.wholes(2);
  process.exit();
  expect(process.lines.join()).toContain('undelivered runs (3), which are lost, except the starts of 1 on disk;');
  disk.obstacle = () => {};
  expect((await deliverRest()).stats()).toMatchObject({ recovered: 2 });
});

it.each([
  ['memory', false],
  ['spill', true],
  ['write-ahead', true],
] as const)(
  'with %s, files on disk are redacted, contain no key, and are private to their owner [security 18]',
  async (durability, isKept) => {
    const dir = join(testFolder(), 'spool');
    const { whole, close } = await delivery({
      reply: () => 'hold',
      options: { durability, spoolDir: dir, apiKey: 'canary-key' },
    });
    whole('ask', { inputs: { question: 'kept', password: 'canary-input' } });
    await close({ timeoutMs: 50 });
    const paths = existsSync(dir)
      ? readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((path) => join(dir, path))
      : [];
    const files = paths.filter((path) => statSync(path).isFile());
    const written = files.map((path) => readFileSync(path, 'latin1')).join('\n');

    expect(written.includes('kept')).toBe(isKept);
    expect(`${written}${paths}`).not.toContain('canary');
    expect(written).not.toContain(Buffer.from('canary').toString('base64').slice(0, 6));
    for (const path of paths) expect(statSync(path).mode & 0o077).toBe(0);
  },
);

it('runs from disk arrive like runs from memory: payloads, metadata, errors, events, attachments', async () => {
  const text = fc.string({ unit: codePoint, maxLength: 30 }).map((given) => given.toWellFormed());
  const options = fc.record({
    inputs: fc.dictionary(text, fc.jsonValue(), { maxKeys: 3 }),
    metadata: fc.dictionary(text.filter(Boolean), text, { maxKeys: 2 }),
    tags: fc.array(text.filter(Boolean), { maxLength: 2 }),
    runType: fc.constantFrom('llm', 'tool'),
  });
  const given = fc.record({ options, isFailed: fc.boolean(), bytes: fc.uint8Array({ maxLength: 50 }) });
  await forAllAsync(8, [fc.array(given, { minLength: 1, maxLength: 6 }), fc.boolean()], async (runs, isWriteAhead) => {
    const { start, deliverRest } = machine();
    // They are taken and not answered, so they are delivered again.
    const first = await start({ options: isWriteAhead ? writeAhead : {}, reply: () => 'hold' });
    for (const { options, isFailed, bytes } of runs) {
      const run = first.start('ask', options);
      run.event('token', { n: 1 });
      run.attach('file', bytes, 'image/png');
      if (isFailed) run.fail(new Error('mine'));
      else run.end({ a: options.inputs });
    }
    await until(() => first.service.requests.length === 1);
    first.exit();
    const { service } = await deliverRest();
    const arrivals = service.arrivals('ask');
    const byId = (one: Arrival, other: Arrival): number => (one.id < other.id ? -1 : 1);

    expect(arrivals).toHaveLength(2 * runs.length);
    expect(arrivals.slice(runs.length).sort(byId)).toEqual(arrivals.slice(0, runs.length).sort(byId));
    virtualClock.reset();
  });
});
