// Later processes deliver the files of earlier processes.
import '../support/virtual-timers.ts';

import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ConfigureOptions } from '#src/config/options.ts';
import { addsUp } from '../support/adds-up.ts';
import { advance, finished, settle, until } from '../support/delivery.ts';
import { type Machine, machine } from '../support/processes.ts';

const writeAhead = { durability: 'write-ahead' } as const;

/** A process that leaves `count` runs on disk, `perFile` in each file, and one failed run. */
async function left({ start }: Machine, count: number, perFile = count): Promise<string[]> {
  const process = await start({
    reply: () => 503,
    limits: { batchRuns: 1, requestsInFlight: 1, retryDelayMs: 60_000, retryDelayMaxMs: 60_000 },
  });
  process.whole('failed');
  await advance(5_000);
  const names = Array.from({ length: count }, (_, at) => `kept ${at + 1}`);
  for (const [at, name] of names.entries()) {
    process.whole(name);
    if ((at + 1) % perFile === 0) await advance(2_000);
  }
  process.exit();
  return names;
}

const posted = ({ service }: { service: { batches: readonly (readonly string[])[] } }): string[] =>
  service.batches.flat().filter((name) => name.startsWith('whole kept'));

describe('a process that was killed', () => {
  it('leaves all runs of `write-ahead` to the next process, which counts them as recovered, once', async () => {
    const { start, deliverRest, segments } = machine();
    const first = await start({ options: writeAhead, reply: () => 'hold' });
    first.wholes(5);
    first.start('never ended');
    first.kill();
    const next = await deliverRest({ options: writeAhead });

    expect(next.stats()).toMatchObject({ created: 1, recovered: 6, sent: 7, dropped: 0 });
    expect(next.service.batches.flat()).toContain('start never ended');
    expect(segments()).toEqual([]);
    expect((await deliverRest()).stats()).toMatchObject({ recovered: 0 });
  });

  it.each([
    ['start', 403],
    ['whole', 500],
  ] as const)('may leave a run that is always refused: those after it are sent: %s, %i', async (kind, status) => {
    const { start, deliverRest } = machine();
    for (const name of ['bad', 'good']) {
      const process = await start({ options: writeAhead, reply: () => 'hold' });
      process[name === 'bad' ? kind : 'whole'](name);
      process.kill();
    }
    const last = await start({ reply: ({ names }) => (names.some((name) => name.endsWith('bad')) ? status : 202) });
    last.whole();
    await until(() => last.stats().sent === 2);
    expect(last.service.batches.flat()).toContain('whole good');
    last.kill();
    expect((await deliverRest()).stats()).toMatchObject({ recovered: 1 });
  });

  it('loses no kept run and no order, even if eight later processes are killed', async () => {
    const earlier = machine();
    const names = await left(earlier, 12, 4);
    for (let restarts = 0; restarts < 8; restarts++) {
      const process = await earlier.start({ reply: () => 'hold', options: writeAhead });
      process.start(`restart ${restarts}`);
      await advance(2_000);
      process.kill();
    }
    const { service, stats } = await earlier.deliverRest({ limits: { requestsInFlight: 1 } });
    const arrived = service.batches.flat().filter((name) => name.startsWith('whole kept'));

    expect([...new Set(arrived)]).toEqual(names.map((name) => `whole ${name}`));
    expect(stats()).toMatchObject({ recovered: 13 + 8, dropped: 0 });
  });

  it('may leave more than `spoolBytes`: all runs are delivered, the oldest first, and none is refused', async () => {
    const earlier = machine();
    const names = await left(earlier, 20, 5);
    const last = await earlier.deliverRest({
      limits: { spoolBytes: 1_000, queueRuns: 8, batchRuns: 2, requestsInFlight: 1 },
    });

    const arrived = posted(last);
    expect(new Set(arrived)).toEqual(new Set(names.map((name) => `whole ${name}`)));
    const places = [6, 11, 16].map((number) => arrived.indexOf(`whole kept ${number}`));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(last.stats()).toMatchObject({ recovered: 21, sent: 22, dropped: 0 });
  });

  it('may leave more runs than the queue holds: no new run is refused, and no run is written again', async () => {
    const earlier = machine();
    await left(earlier, 20);
    const bytes = earlier.disk.bytes;
    const { wholes, whole, service, stats } = await earlier.start({
      limits: { queueRuns: 8, batchRuns: 1, requestsInFlight: 1, requestTimeoutMs: 1e9 },
      reply: () => 'hold',
    });
    whole('first');
    await advance(1_000);
    expect(stats()).toMatchObject({ created: 1, recovered: 20, dropped: 0 });
    await advance(10_000);
    expect(earlier.disk.bytes).toBeLessThan(bytes + 2_000);
    wholes(30);
    await settle();
    expect(stats()).toMatchObject({ dropped: 0 });
    expect(addsUp(stats())).toBe(true);
    service.reply = () => 202;
  });

  it.each<[string, ConfigureOptions, ConfigureOptions, number]>([
    ['another key', { apiKey: 'one' }, { apiKey: 'two' }, 0],
    ['no key', { apiKey: 'one' }, {}, 0],
    ['other credentials', { headers: { authorization: 'Bearer 1' } }, { headers: { authorization: 'Bearer 2' } }, 0],
    ['another function', { apiKey: () => 'one' }, { apiKey: () => 'two' }, 1],
    ['another workspace', { workspaceId: 'v' }, { workspaceId: 'w' }, 0],
    ['no workspace', { apiKey: 'one', workspaceId: 'v' }, { apiKey: 'one' }, 0],
    ['the same key', { apiKey: 'one' }, { apiKey: 'one' }, 1],
    ['the same workspace and another key', { apiKey: 'one', workspaceId: 'v' }, { apiKey: 'two', workspaceId: 'v' }, 1],
  ])('is recovered by a process with %s: %j, %j, %i runs', async (_, before, after, recovered) => {
    const { start, deliverRest } = machine();
    const first = await start({ options: before, reply: () => 'hold' });
    first.whole();
    first.exit();
    expect((await deliverRest({ options: after })).stats()).toMatchObject({ recovered });
  });

  it.each([
    [202, { sent: 2, droppedByReason: { expired: 0 } }],
    [503, { sent: 1, droppedByReason: { expired: 1 } }],
  ])('leaves runs that are sent once if they are older than `spoolAgeMs`: status %i', async (status, counts) => {
    const { disk, start, segments } = machine();
    const first = await start({ reply: () => 'hold' });
    first.whole('old');
    first.exit();
    disk.nowMs += 3 * 86_400_000;
    const last = await start({ reply: ({ names }) => (names.includes('whole old') ? status : 202) });
    const requests = last.service.batches.length;
    last.whole('last');
    await until(() => last.stats().sent + last.stats().dropped === 2);

    expect(last.stats()).toMatchObject({ recovered: 1, ...counts });
    expect(last.service.batches.slice(requests).filter((names) => names.includes('whole old'))).toHaveLength(1);
    expect(segments()).toEqual([]);
  });
});

it('a process that ends normally delivers queued runs, then runs on disk, within its time limit', async () => {
  for (const isAway of [false, true]) {
    const earlier = machine();
    await left(earlier, 8, 4);
    const { exporter, whole, stats } = await earlier.start({ reply: () => (isAway ? 'hold' : 202) });
    whole('last');
    const { ok } = await finished(exporter.finish({ timeoutMs: 2_000 }));
    expect(ok).toBe(!isAway);
    expect(stats()).toMatchObject({ sent: isAway ? 0 : 10, dropped: 0 });
    expect(addsUp(stats())).toBe(true);
  }
});

it('runs for a wrong key stay on disk until a process with the right key delivers them', async () => {
  const { start, deliverRest } = machine();
  for (const name of ['first', 'second']) {
    const process = await start({ options: { apiKey: 'wrong', workspaceId: 'w' }, reply: () => 401 });
    process.whole(name);
    await process.close({ timeoutMs: 500 });
    expect(process.stats()).toMatchObject({ sent: 0, dropped: 0, queued: 0, inFlight: 0 });
    expect(addsUp(process.stats())).toBe(true);
    process.kill();
  }
  const last = await deliverRest({ options: { apiKey: 'right', workspaceId: 'w' } });
  expect(last.stats()).toMatchObject({ created: 1, recovered: 2, sent: 3, dropped: 0 });
});

it('two exporters of a process have separate folders, and take over neither', async () => {
  const { disk, start, segments } = machine();
  const time = disk.process();
  const one = await start({ options: writeAhead, reply: () => 'hold', time });
  one.whole('one');
  const two = await start({ options: writeAhead, reply: () => 'hold', time });
  two.whole('two');
  await advance(70_000);

  expect(new Set(segments().map(dirname)).size).toBe(2);
  expect([one, two].map(({ stats }) => stats().recovered)).toEqual([0, 0]);
});

describe('a process with the same id as another', () => {
  it('takes over the runs of the ended process', async () => {
    const { start } = machine();
    const first = await start({ options: writeAhead, reply: () => 'hold' });
    first.whole('kept');
    first.kill();
    const second = await start();
    second.whole();
    await until(() => second.stats().sent === 2);
    expect(second.stats()).toMatchObject({ recovered: 1 });
  });

  it('in another namespace takes over a folder only after a minute without heartbeat, as in two containers', async () => {
    const { start, segments } = machine();
    const first = await start({ options: writeAhead, limits: { requestTimeoutMs: 1e9 }, reply: () => 'hold' });
    first.whole('kept');
    const second = await start({ limits: { requestTimeoutMs: 1e9 }, reply: () => 'hold' }, '2');
    second.start();
    await advance(300_000);
    expect(second.stats()).toMatchObject({ recovered: 0 });
    expect(segments()).toHaveLength(1);
    first.kill();
    const third = await start({}, '2');
    third.whole();
    await until(() => third.stats().sent === 2);
    expect(third.stats()).toMatchObject({ recovered: 1 });
  });
});

it('a suspended process whose folder was taken over keeps runs recorded after its next heartbeat', async () => {
  const { disk, start } = machine();
  const suspended = await start({ options: writeAhead, reply: () => 'hold' });
  suspended.whole('before');
  disk.nowMs += 120_000;
  const other = await start({ options: writeAhead });
  other.whole();
  await until(() => other.stats().recovered === 1);
  await advance(6_000);
  suspended.whole('canary after');
  expect(disk.text).toContain('canary after');
});

it('foreign files are not changed', async () => {
  const earlier = machine();
  await left(earlier, 1);
  const [path = ''] = earlier.segments();
  const foreign = ['notes.txt', '1.seg', `${basename(path)}.tmp`].map((name) => join(dirname(path), name));
  for (const name of foreign) earlier.disk.plant(name, Buffer.from('mine'));
  expect((await earlier.deliverRest()).stats()).toMatchObject({ recovered: 2, dropped: 0 });
  for (const name of foreign) expect(earlier.disk.files).toContain(name);
});
