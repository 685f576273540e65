// What later processes make of the files that earlier ones have left.
import '../support/virtual-timers.ts';

import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import { advance, settle, until } from '../support/delivery.ts';
import { root } from '../support/folders.ts';
import { type Machine, machine } from '../support/processes.ts';

const writeAhead = { durability: 'write-ahead' } as const;
const BAD_BYTES_MAX = 10 * 1024 * 1024;

/** A process that leaves `count` runs on disk, in files of so many. */
async function left({ start }: Machine, count: number, perFile = count, name = 'kept'): Promise<string[]> {
  const process = await start({
    reply: () => 503,
    limits: { batchRuns: 1, requestsInFlight: 1, requestTimeoutMs: 1e9, spillAfterMs: 1 },
  });
  process.service.reply = () => 'hold';
  const names: string[] = [];
  for (let number = 1; number <= count; number++) {
    names.push(`${name} ${number}`);
    process.whole(`${name} ${number}`);
    if (number % perFile === 0 && number < count) await advance(2_000);
  }
  process.exit();
  return names;
}

const posted = ({ service }: { service: { batches: readonly (readonly string[])[] } }): string[] =>
  service.batches.flat().filter((name) => name.startsWith('whole kept'));

describe('a process that was killed', () => {
  it('leaves all that was written ahead to the next, which counts it as recovered, once', async () => {
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

  it('costs no run that is kept, however many are killed before they deliver it, and no order', async () => {
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
    expect(stats()).toMatchObject({ recovered: 12 + 8, dropped: 0 });
  });

  it('leaves runs that are sent although an earlier one fails again and again', async () => {
    const { start, deliverRest } = machine();
    for (const name of ['bad', 'good']) {
      const process = await start({ options: writeAhead, reply: () => 'hold' });
      process.whole(name);
      process.kill();
    }
    const last = await start({ reply: ({ names }) => (names.includes('whole bad') ? 500 : 202) });
    last.whole();
    await until(() => last.stats().sent === 2);
    expect(last.service.batches.flat()).toContain('whole good');
    last.kill();
    expect((await deliverRest()).stats()).toMatchObject({ recovered: 1 });
  });

  it('leaves more than a later one may hold, which is delivered, oldest first, while nothing is refused', async () => {
    const earlier = machine();
    const names = await left(earlier, 20, 5);
    const last = await earlier.deliverRest({
      limits: { spoolBytes: 1_000, queueRuns: 8, batchRuns: 2, requestsInFlight: 1 },
    });

    const arrived = posted(last);
    expect(new Set(arrived)).toEqual(new Set(names.map((name) => `whole ${name}`)));
    const places = [6, 11, 16].map((number) => arrived.indexOf(`whole kept ${number}`));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(last.stats()).toMatchObject({ recovered: 20, sent: 21, dropped: 0 });
  });

  it('leaves more than the queue holds: nothing new is refused for that, and nothing is written to disk again', async () => {
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

  it('leaves nothing to a process with another key', async () => {
    const { start, deliverRest } = machine();
    const first = await start({ options: { apiKey: 'one' }, reply: () => 'hold' });
    first.whole();
    first.exit();
    expect((await deliverRest({ options: { apiKey: 'two' } })).stats()).toMatchObject({ recovered: 0 });
    expect((await deliverRest({ options: { apiKey: 'one' } })).stats()).toMatchObject({ recovered: 1 });
  });

  it.each([
    [202, { sent: 2, droppedByReason: { expired: 0 } }],
    [503, { sent: 1, droppedByReason: { expired: 1 } }],
  ])(
    'leaves runs that are sent once if they are older than `spoolAgeMs`, with the status %i',
    async (status, counts) => {
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
    },
  );

  it('leaves runs whose order stays when the wall clock goes back', async () => {
    const { disk, start, deliverRest } = machine();
    const first = await start({
      reply: () => 503,
      limits: { batchRuns: 1, requestsInFlight: 1, spillAfterMs: 1 },
    });
    first.whole('first');
    for (let number = 1; number <= 3; number++) {
      await advance(3_000);
      first.whole(`kept ${number}`);
      disk.nowMs -= 600_000;
    }
    first.exit();
    const last = await deliverRest({ limits: { requestsInFlight: 1 } });
    const arrived = last.service.batches.flat().slice(-6);

    expect(posted(last).slice(-3)).toEqual(['whole kept 1', 'whole kept 2', 'whole kept 3']);
    expect(arrived).toContain('whole first');
  });
});

it('what a wrong key keeps from delivery stays on disk from start to start, and arrives with the right one', async () => {
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

it('two exporters of a process have a folder each, and leave that of the other alone while it is open', async () => {
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
  it('takes over what that has left if it has ended, though the id is in use again', async () => {
    const { start } = machine();
    const first = await start({ options: writeAhead, reply: () => 'hold' });
    first.whole('kept');
    first.kill();
    const second = await start();
    second.whole();
    await until(() => second.stats().sent === 2);
    expect(second.stats()).toMatchObject({ recovered: 1 });
  });

  it('in another namespace takes over only what has been silent for a minute, as in two containers', async () => {
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

it('files of another kind are left alone', async () => {
  const earlier = machine();
  await left(earlier, 1);
  const [path = ''] = earlier.segments();
  const foreign = ['notes.txt', '1.seg', `${basename(path)}.tmp`].map((name) => join(dirname(path), name));
  for (const name of foreign) earlier.disk.plant(name, Buffer.from('mine'));
  expect((await earlier.deliverRest()).stats()).toMatchObject({ recovered: 1, dropped: 0 });
  for (const name of foreign) expect(earlier.disk.files).toContain(name);
});

describe('a file', () => {
  const golden = (name: string): Buffer => readFileSync(join(root, `test/fixtures/spool/${name}.seg`));

  it('of an earlier version is delivered, with a name that counts deaths too', async () => {
    for (const rename of [(path: string) => path, (path: string) => path.replace(/\.seg$/, '.a5.seg')]) {
      const earlier = machine();
      await left(earlier, 1);
      const [path = ''] = earlier.segments();
      earlier.disk.remove(path);
      earlier.disk.plant(rename(path), golden('version-1'));
      const { stats } = await earlier.deliverRest();

      expect(stats()).toMatchObject({ recovered: 2, dropped: 0 });
      expect(earlier.segments()).toEqual([]);
    }
  });

  it('of a later version is left as it is, and one line reports it', async () => {
    const earlier = machine();
    await left(earlier, 1);
    const [path = ''] = earlier.segments();
    const later = golden('version-3');
    earlier.disk.damage(path, () => later);
    for (let restarts = 0; restarts < 7; restarts++) {
      const { lines, stats } = await earlier.deliverRest();
      expect(stats()).toMatchObject({ recovered: 0, sent: 1, dropped: 0 });
      const [kept = ''] = earlier.segments();
      expect(basename(kept)).toBe(basename(path));
      expect(earlier.disk.read(kept)).toEqual(later);
      expect(lines[0]).toContain('was written by a later version of runspan and is left as it is; upgrade');
    }
  });

  it('that is torn, zeroed, truncated or has a changed payload costs the runs that it hits alone', async () => {
    const harm = fc.oneof(
      fc.double({ min: 0, max: 1, noNaN: true }).map((share) => ({ kind: 'truncated' as const, share })),
      fc.double({ min: 0, max: 1, noNaN: true }).map((share) => ({ kind: 'zeroed' as const, share })),
      fc.integer({ min: 1, max: 12 }).map((number) => ({ kind: 'payload' as const, number })),
      fc.constantFrom('garbage' as const, 'empty' as const).map((kind) => ({ kind })),
    );
    await fc.assert(
      fc.asyncProperty(harm, fc.boolean(), async (given, isWriteAhead) => {
        const { disk, start, deliverRest, segments } = machine();
        const first = await start({ options: isWriteAhead ? writeAhead : {}, reply: () => 'hold' });
        for (let number = 1; number <= 12; number++) first.whole(`r${number}`, { inputs: { canary: `<${number}>` } });
        first.exit();
        const [path = ''] = segments();
        disk.damage(path, (bytes) => {
          if (given.kind === 'garbage') return Buffer.from('rubbish');
          if (given.kind === 'empty') return Buffer.alloc(0);
          if (given.kind === 'truncated') return bytes.subarray(0, Math.floor(bytes.length * given.share));
          if (given.kind === 'zeroed') return bytes.fill(0, Math.floor(bytes.length * given.share));
          if (given.kind === 'payload') {
            const canary = `<${given.number}>`;
            for (let at = bytes.indexOf(canary); at >= 0; at = bytes.indexOf(canary, at))
              bytes[at] = (bytes[at] ?? 0) ^ 1;
          }
          return bytes;
        });
        const { stats, service, drops } = await deliverRest();
        const { recovered, sent, droppedByReason } = stats();

        expect(addsUp(stats())).toBe(true);
        expect(recovered).toBe(sent - 1 + droppedByReason.corrupt);
        expect(drops.every((drop) => drop.startsWith('corrupt'))).toBe(true);
        // Each run that arrives is as it was.
        const arrived = service.requests.flatMap(({ arrivals }) => arrivals).filter(({ name }) => name.startsWith('r'));
        for (const { name, fields } of arrived) expect(fields.inputs).toEqual({ canary: `<${name.slice(1)}>` });
        if (given.kind === 'payload') {
          expect(sent - 1).toBe(11);
          expect(droppedByReason.corrupt).toBe(1);
        }
        if (given.kind === 'truncated' || given.kind === 'zeroed') {
          expect(sent - 1).toBeGreaterThanOrEqual(Math.floor(12 * given.share * (isWriteAhead ? 0.4 : 0.9)) - 1);
        }
        expect(segments().filter((file) => !file.includes('/bad/'))).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });

  it('that is damaged is set aside once its other runs are delivered, and reported in one line', async () => {
    const { disk, start, deliverRest, segments } = machine();
    const first = await start({ reply: () => 'hold' });
    first.wholes(3);
    first.exit();
    const [path = ''] = segments();
    // A journal of names alone leaves the length of a file, and zeros where nothing was written yet.
    disk.damage(path, (bytes) => bytes.fill(0, bytes.length - 40));
    const bytes = disk.read(path);
    const { lines, stats } = await deliverRest();

    expect(stats()).toMatchObject({ recovered: 3, sent: 3, droppedByReason: { corrupt: 1 } });
    const [bad = ''] = segments();
    expect(dirname(bad)).toMatch(/\/bad$/);
    expect(disk.read(bad)).toEqual(bytes);
    expect(lines.filter((line) => line.includes('is damaged'))).toHaveLength(1);
  });

  it('that is damaged is kept with others up to 10 MiB, the newest of them', async () => {
    const earlier = machine();
    const third = Math.ceil(BAD_BYTES_MAX / 3) + 1;
    for (let number = 1; number <= 4; number++) await left(earlier, 1, 1, `kept ${number}`);
    const paths = earlier.segments();
    expect(paths).toHaveLength(4);
    for (const path of paths) earlier.disk.damage(path, () => Buffer.alloc(third));
    await earlier.deliverRest();
    const kept = earlier.segments();

    expect(kept.length).toBeGreaterThan(0);
    expect(kept.reduce((sum, path) => sum + earlier.disk.read(path).length, 0)).toBeLessThanOrEqual(BAD_BYTES_MAX);
  });

  it('whose record of a start is damaged costs nothing if that of the end is whole', async () => {
    const { disk, start, deliverRest, segments } = machine();
    const first = await start({ options: writeAhead, reply: () => 'hold' });
    first.start('ask', { inputs: { text: 'canary' } }).end({ a: 1 });
    first.kill();
    const [path = ''] = segments();
    disk.damage(path, (bytes) => {
      const at = bytes.indexOf('canary');
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return bytes;
    });
    const { stats, service } = await deliverRest();

    expect(stats()).toMatchObject({ recovered: 1, sent: 2, dropped: 0 });
    expect(service.arrivals('ask').at(-1)?.isEnded).toBe(true);
  });

  it('whose record of an end is damaged costs that run, once, though that of its start is whole', async () => {
    const { disk, start, deliverRest, segments } = machine();
    const first = await start({ options: writeAhead, reply: () => 'hold' });
    first.start('ask').end({ text: 'canary' });
    first.kill();
    disk.damage(segments()[0] ?? '', (bytes) => {
      const at = bytes.indexOf('canary');
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return bytes;
    });
    const { stats, drops } = await deliverRest();

    expect(drops).toHaveLength(1);
    expect(stats()).toMatchObject({ recovered: 1, sent: 1, spooled: 0, droppedByReason: { corrupt: 1 } });
  });

  it('that is damaged is counted by the process that sets it aside, and by no other', async () => {
    const { disk, start, deliverRest, segments } = machine();
    const first = await start({ reply: () => 'hold' });
    first.wholes(3);
    first.exit();
    disk.damage(segments()[0] ?? '', (bytes) => bytes.subarray(0, -1));
    const second = await start({ reply: () => 'hold' });
    second.start('second');
    await settle();
    await advance(1_000);
    await second.close({ timeoutMs: 0 });
    expect(second.stats()).toMatchObject({ dropped: 0 });
    second.kill();

    expect((await deliverRest()).stats()).toMatchObject({ recovered: 4, droppedByReason: { corrupt: 1 } });
  });
});
