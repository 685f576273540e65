import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { defaultLimits, type Limits } from '../../src/base/limits.ts';
import type { OnDrop } from '../../src/export/drop-notice.ts';
import type { Exporter } from '../../src/export/exporter.ts';
import { openSpool } from '../../src/export/spool.ts';
import type { EncodedRun } from '../../src/run/encoded-run.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { addsUp, makeExporter, turns } from '../support/exporter.ts';
import { fail, MEMORY_SPOOL, MemoryDisk } from '../support/memory-fs.ts';
import { told } from '../support/told.ts';

/** An exporter of a process of its own, on a disk that it may share with others. */
function onDisk(
  { limits = {}, isWriteAhead = false, onDrop }: { limits?: Partial<Limits>; isWriteAhead?: boolean; onDrop?: OnDrop },
  disk = new MemoryDisk(),
) {
  diagnostics.forgetPlaces();
  const { fs, die } = disk.process();
  const spool = openSpool({
    spoolDir: MEMORY_SPOOL,
    endpoint: new URL('http://service'),
    workspaceId: undefined,
    apiKey: undefined,
    bytesMax: limits.spoolBytes ?? defaultLimits.spoolBytes,
    ageMaxMs: limits.spoolAgeMs ?? defaultLimits.spoolAgeMs,
    fs,
    wallMs: () => disk.nowMs,
  });
  return { ...makeExporter(limits, onDrop, { spool, isWriteAhead }), disk, die };
}

function whole(exporter: Exporter, fields: Partial<EncodedRun> = {}): EncodedRun {
  const run = makeRun({ inputs: '{"question":1}', ...fields });
  exporter.start(run);
  exporter.end(ended(run, { outputs: '{"answer":2}' }));
  return run;
}

/** An exporter that waits for the answer to its first request, in which one run is, and sends no other. */
async function waiting(options: Parameters<typeof onDisk>[0]) {
  const made = onDisk({ ...options, limits: { batchRuns: 1, requestsInFlight: 1, ...options.limits } });
  whole(made.exporter);
  const first = await made.transport.sending(0);
  const answer = async (): Promise<void> => {
    made.outage.succeeded();
    first.settle({ kind: 'accepted' });
    first.end();
    await turns(6);
  };
  return { ...made, answer };
}

const segments = (disk: MemoryDisk) => disk.files.filter((path) => path.endsWith('.seg'));

describe('with spill, what has ended goes to the disk', () => {
  it.each([
    [4, 0],
    [5, 0],
    [6, 4],
  ])('when more than half of the queue is taken: of 10 runs %i, until a quarter is left', async (count, spooled) => {
    const { exporter } = await waiting({ limits: { queueRuns: 10 } });
    for (let made = 0; made < count; made++) whole(exporter);
    await turns();
    expect(exporter.stats()).toMatchObject({ queued: count - spooled, spooled });
    expect(addsUp(exporter.stats())).toBe(true);
  });

  it.each([
    [-1, 0],
    [0, 0],
    [1, 1],
  ])('when more than half of its bytes are: %i beyond', async (beyond, spooled) => {
    const run = makeRun({ inputs: '{"question":1}' });
    const { exporter, outage } = await waiting({ limits: { queueBytes: 2 * (bytesOf(run) - beyond) } });
    outage.failed();
    exporter.start(run);
    exporter.end(ended(run, { outputs: '{"answer":2}' }));
    await turns();
    expect(exporter.stats()).toMatchObject({ spooled });
  });

  it.each([
    [4_999, 0],
    [5_000, 1],
  ])('when the service has been away for %i ms', async (ms, spooled) => {
    const { exporter, outage, time } = await waiting({});
    outage.failed();
    time.nowMs += ms;
    whole(exporter);
    await turns();
    expect(exporter.stats()).toMatchObject({ spooled });
  });

  it('at once, instead of being refused where the queue is full', () => {
    const { exporter } = onDisk({ limits: { queueRuns: 3 } });
    for (let made = 0; made < 10; made++) whole(exporter);
    const { dropped, spooled, queued } = exporter.stats();
    expect({ dropped, all: spooled + queued }).toEqual({ dropped: 0, all: 10 });
  });

  it('at once, also where what has come back from the disk takes up all of the queue', async () => {
    const earlier = onDisk({ isWriteAhead: true });
    for (let made = 0; made < 20; made++) whole(earlier.exporter);
    earlier.die();
    const limits = { queueRuns: 8, batchRuns: 1, requestsInFlight: 1 };
    const { exporter, transport } = onDisk({ limits }, earlier.disk);
    exporter.recover();
    await transport.sending(0);
    expect(exporter.stats()).toMatchObject({ recovered: 20, queued: 19, inFlight: 1 });
    for (let made = 0; made < 30; made++) whole(exporter);
    expect(exporter.stats().dropped).toBe(0);
    expect(addsUp(exporter.stats())).toBe(true);
  });

  it('together, and not each in a file of its own, where it comes one by one during an outage', async () => {
    const { exporter, outage, time, disk } = await waiting({});
    outage.failed();
    time.nowMs += 5_000;
    whole(exporter);
    await turns();
    for (const passingMs of [999, 1]) {
      expect(segments(disk)).toHaveLength(1);
      time.nowMs += passingMs;
      whole(exporter);
      await turns();
    }
    expect(segments(disk)).toHaveLength(2);
    expect(exporter.stats()).toMatchObject({ queued: 0, spooled: 3 });
  });

  it('so that the end of an accepted run keeps its payloads', async () => {
    const run = makeRun({ inputs: '{"question":1}' });
    const { exporter } = await waiting({ limits: { queueBytes: 3 * bytesOf(run) } });
    const open = [1, 2].map(() => makeRun({ inputs: '{"question":1}' }));
    for (const one of open) exporter.start(one);
    for (const one of open) exporter.end(ended(one, { outputs: JSON.stringify({ answer: '.'.repeat(4_000) }) }));
    expect(open.map(({ outputs = '' }) => outputs).join()).not.toContain('left out');
    expect(exporter.stats()).toMatchObject({ spooled: 1, queued: 1 });
  });

  it('not while it is open, so that its end can travel with its start', async () => {
    const { exporter } = onDisk({ limits: { queueRuns: 10 } });
    for (let made = 0; made < 8; made++) exporter.start(makeRun());
    await turns();
    expect(exporter.stats()).toMatchObject({ open: 8, spooled: 0 });
  });
});

/** The bytes that a queue counts for a run. */
function bytesOf(run: EncodedRun): number {
  const texts = ['{"question":1}', '{"answer":2}'];
  return 960 + run.dottedOrder.length + run.name.length + texts.join('').length;
}

describe('what is on disk', () => {
  it('is sent when the service answers again, is waited for by a flush, and leaves no file', async () => {
    const { exporter, transport, outage, time, disk, answer } = await waiting({});
    outage.failed();
    time.nowMs += 5_000;
    const run = whole(exporter);
    await turns();
    expect(segments(disk)).toHaveLength(1);
    expect(await exporter.flush({ timeoutMs: 0 })).toEqual({ ok: false, pending: 2 });
    const flushed = exporter.flush();
    await answer();
    const [item] = await transport.finish(1);
    expect(item).toMatchObject({ op: 'post', isEnded: true, inputs: '{"question":1}', outputs: '{"answer":2}' });
    expect(item?.delivery.run.id).toBe(run.id);
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ created: 2, sent: 2, spooled: 0, recovered: 0 });
    expect(segments(disk)).toEqual([]);
  });

  it('is not asked for while the service is away and requests under way will tell of its return', async () => {
    const { exporter, transport, outage, time, answer } = await waiting({});
    outage.failed();
    time.nowMs += 5_000;
    whole(exporter);
    await turns(8);
    expect(exporter.stats()).toMatchObject({ spooled: 1, queued: 0 });
    await answer();
    expect((await transport.sending(1)).items[0]?.delivery.ticket).toBeDefined();
  });

  it('counts as corrupt where it cannot be read any more', async () => {
    const drops: string[] = [];
    const { exporter, outage, time, disk, answer } = await waiting({ onDrop: (reason) => drops.push(reason) });
    outage.failed();
    time.nowMs += 5_000;
    whole(exporter);
    whole(exporter);
    await turns();
    disk.damage(segments(disk)[0] as string);
    await answer();
    expect(drops).toEqual(['corrupt']);
    expect(exporter.stats()).toMatchObject({ created: 3, sent: 1, dropped: 1, inFlight: 1, spooled: 0 });
  });

  it('is sent although the service goes on failing for an ended run that came before it', async () => {
    const first = onDisk({ isWriteAhead: true });
    whole(first.exporter, { name: 'poison' });
    first.die();
    const second = onDisk({ isWriteAhead: true }, first.disk);
    first.disk.nowMs += 1_000;
    whole(second.exporter, { name: 'other' });
    second.die();
    const { exporter, transport } = onDisk({}, first.disk);
    exporter.recover();
    await turns(6);
    void exporter.flush();
    await turns(6);
    const names = transport.sendings.flatMap(({ items }) => items.map(({ delivery }) => delivery.run.name));
    expect(names).toEqual(['poison', 'other']);
  });

  it.each([
    ['damaged whole', (disk: MemoryDisk) => disk.damage(segments(disk)[0] as string)],
    ['deleted by somebody else', (disk: MemoryDisk) => disk.wipe()],
  ])('counts as corrupt, and holds up no flush, when it is %s', async (_, harm) => {
    const drops: string[] = [];
    const { exporter, outage, time, disk, answer } = await waiting({ onDrop: (reason) => drops.push(reason) });
    outage.failed();
    time.nowMs += 5_000;
    whole(exporter);
    await turns();
    harm(disk);
    await answer();
    expect(drops).toEqual(['corrupt']);
    expect(exporter.stats()).toMatchObject({ created: 2, sent: 1, dropped: 1, spooled: 0 });
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
  });

  it.each([
    [1_000, 'inFlight'],
    [1_001, 'dropped'],
  ] as const)('that is %i ms old, where 1 000 are allowed, is %s', async (ageMs, place) => {
    const { exporter, outage, time, disk, answer } = await waiting({ limits: { spoolAgeMs: 1_000 } });
    outage.failed();
    time.nowMs += 5_000;
    whole(exporter);
    await turns();
    disk.nowMs += ageMs;
    await answer();
    expect(exporter.stats()).toMatchObject({ [place]: 1, spooled: 0 });
  });
});

describe('a disk that refuses', () => {
  it('leaves runs in memory, within the limits of the queue, and is told once', async () => {
    const lines = told();
    const { exporter, disk } = onDisk({ limits: { queueRuns: 4 } });
    disk.obstacle = (_, path) => fail('ENOSPC', path);
    for (let made = 0; made < 6; made++) whole(exporter);
    await turns();
    expect(exporter.stats()).toMatchObject({ queued: 4, spooled: 0, droppedByReason: { queue_full: 2 } });
    expect(lines.filter((line) => line.includes('ENOSPC'))).toHaveLength(1);
  });

  it('is tried once more when the process ends, however short ago it refused', async () => {
    told();
    const { exporter, disk } = onDisk({ limits: { queueRuns: 4 } });
    disk.obstacle = (_, path) => fail('ENOSPC', path);
    for (let made = 0; made < 4; made++) whole(exporter);
    await turns();
    disk.obstacle = () => {};
    exporter.endProcess();
    expect(exporter.stats()).toMatchObject({ spooled: 4, dropped: 0 });
  });

  it('loses nothing of what is written ahead and can be sent', async () => {
    const { exporter, transport, disk } = onDisk({ isWriteAhead: true });
    disk.obstacle = (_, path) => fail('ENOSPC', path);
    whole(exporter);
    const flushed = exporter.flush();
    await transport.finish(0);
    expect(await flushed).toEqual({ ok: true, pending: 0 });
  });
});

describe('with write-ahead', () => {
  it('a record is on disk when the call returns, and gone when the service has it', async () => {
    const { exporter, transport, disk } = onDisk({ isWriteAhead: true });
    const run = makeRun();
    exporter.start(run);
    expect(segments(disk)).toHaveLength(1);
    const afterStart = disk.bytes;
    exporter.end(ended(run));
    expect(disk.bytes).toBeGreaterThan(afterStart);
    void exporter.flush();
    await transport.finish(0);
    expect(segments(disk)).toEqual([]);
  });

  it('a process that is killed leaves every run to the next, which counts them as recovered', async () => {
    const first = onDisk({ isWriteAhead: true });
    const runs = [whole(first.exporter), whole(first.exporter)];
    const open = makeRun({ name: 'never ended' });
    first.exporter.start(open);
    first.die();
    const { exporter, transport, disk } = onDisk({ isWriteAhead: true }, first.disk);
    whole(exporter);
    await turns(6);
    void exporter.flush();
    const items = await transport.finish(0);
    expect(items.map(({ delivery, isEnded }) => [delivery.run.id, isEnded])).toEqual(
      expect.arrayContaining([...runs.map(({ id }) => [id, true]), [open.id, false]]),
    );
    expect(exporter.stats()).toMatchObject({ created: 1, recovered: 3, sent: 4 });
    expect(segments(disk)).toEqual([]);
  });
});

describe('what an earlier process has left, and somebody has damaged', () => {
  /** The exporter that finds it, once all is sent that can be. */
  async function finding(left: MemoryDisk, onDrop?: OnDrop) {
    const made = onDisk({ ...(onDrop !== undefined && { onDrop }) }, left);
    made.exporter.recover();
    await turns(6);
    if (made.exporter.stats().recovered > made.exporter.stats().dropped) {
      void made.exporter.flush();
      await made.transport.finish(0);
      await turns(6);
    }
    expect(addsUp(made.exporter.stats())).toBe(true);
    return made;
  }

  const everywhere = (bytes: Buffer): Buffer => {
    // Some of each record, and nothing of the heads.
    for (let at = bytes.indexOf('"start_time"'); at !== -1; at = bytes.indexOf('"start_time"', at)) bytes[at] = 0;
    return bytes;
  };

  it.each([
    [false, 'every record', everywhere, { recovered: 20, sent: 0, dropped: 20 }],
    [true, 'every record', everywhere, { recovered: 20, sent: 0, dropped: 20 }],
    [false, 'everything', (bytes: Buffer) => bytes.fill(0), { recovered: 1, sent: 0, dropped: 1 }],
    [true, 'everything', (bytes: Buffer) => bytes.fill(0), { recovered: 1, sent: 0, dropped: 1 }],
    [false, 'the end', (bytes: Buffer) => bytes.subarray(0, -1), { recovered: 20, sent: 19, dropped: 1 }],
    [false, 'the last record', undefined, { recovered: 20, sent: 19, dropped: 1 }],
  ])(
    'is recovered and dropped, each run once as far as that can be told (write-ahead %s, %s) [fault 59]',
    async (isWriteAhead, _, harm, counts) => {
      told();
      const first = onDisk({ isWriteAhead });
      for (let made = 0; made < 20; made++) whole(first.exporter);
      first.exporter.endProcess();
      first.disk.damage(segments(first.disk)[0] as string, harm);
      const drops: string[] = [];
      const { exporter } = await finding(first.disk, (reason) => drops.push(reason));
      expect(exporter.stats()).toMatchObject(counts);
      expect(drops).toEqual(Array(counts.dropped).fill('corrupt'));
    },
  );

  it('is no loss where it is the start of a run whose end is whole', async () => {
    const first = onDisk({ isWriteAhead: true });
    const run = whole(first.exporter);
    first.die();
    first.disk.damage(segments(first.disk)[0] as string, (bytes) => {
      bytes[bytes.indexOf('"start_time"')] = 0;
      return bytes;
    });
    const { exporter, transport } = await finding(first.disk);
    expect(exporter.stats()).toMatchObject({ recovered: 1, sent: 1, dropped: 0 });
    expect(transport.sendings[0]?.items[0]).toMatchObject({ isEnded: true, delivery: { run: { id: run.id } } });
  });

  it('is dropped once, and not sent as well, where it is the end of a run whose start is whole', async () => {
    const drops: string[] = [];
    const first = onDisk({ isWriteAhead: true });
    const run = whole(first.exporter);
    first.die();
    first.disk.damage(segments(first.disk)[0] as string);
    const { exporter } = await finding(first.disk, (_, { id }) => drops.push(id));
    expect(exporter.stats()).toMatchObject({ recovered: 1, sent: 0, spooled: 0, droppedByReason: { corrupt: 1 } });
    expect(drops).toEqual([run.id]);
  });

  it('is counted by the process that sets the file aside, and by no other', async () => {
    const first = onDisk({});
    for (let made = 0; made < 3; made++) whole(first.exporter);
    first.exporter.endProcess();
    first.disk.damage(segments(first.disk)[0] as string);
    const second = onDisk({}, first.disk);
    second.exporter.recover();
    await turns(6);
    await second.exporter.close({ timeoutMs: 0 });
    expect(second.exporter.stats()).toMatchObject({ recovered: 2, spooled: 2, dropped: 0 });
    const { exporter } = await finding(first.disk);
    expect(exporter.stats()).toMatchObject({ recovered: 3, sent: 2, droppedByReason: { corrupt: 1 } });
  });
});

it('counts the start that a dead process has left as sent when the file that may hold its end is gone', async () => {
  const first = onDisk({ isWriteAhead: true });
  first.exporter.start(makeRun());
  first.die();
  const second = onDisk({ isWriteAhead: true }, first.disk);
  whole(second.exporter);
  second.die();
  const { exporter, transport, disk } = onDisk({}, first.disk);
  whole(exporter);
  await turns(6);
  void exporter.flush();
  await transport.sending(0);
  disk.wipe();
  await transport.finish(0);
  await turns(6);
  expect(exporter.stats()).toMatchObject({ created: 1, recovered: 1, sent: 2, spooled: 0 });
});

describe('an exporter that closes', () => {
  it('does not read back what it leaves to the disk while a request is broken off', async () => {
    const { exporter, transport, disk } = onDisk({ limits: { batchRuns: 1, requestsInFlight: 1 } });
    transport.send = async function* (_, signal) {
      await once(signal, 'abort');
      await turns(9);
      yield { items: [], outcome: { kind: 'accepted' } };
    };
    for (let made = 0; made < 3; made++) whole(exporter);
    await turns();
    const closed = exporter.close({ timeoutMs: 0 });
    await turns();
    void exporter.flush({ timeoutMs: 1 });
    await closed;
    expect(exporter.stats()).toMatchObject({ created: 3, spooled: 3, queued: 0, inFlight: 0, dropped: 0 });
    expect(segments(disk)).toHaveLength(1);
  });

  it('leaves to the disk what could not be sent, and drops nothing', async () => {
    const first = onDisk({});
    whole(first.exporter);
    whole(first.exporter);
    const closed = first.exporter.close({ timeoutMs: 0 });
    expect(await closed).toEqual({ ok: false, pending: 2 });
    expect(first.exporter.stats()).toMatchObject({ spooled: 2, dropped: 0, queued: 0, inFlight: 0 });

    const { exporter, transport } = onDisk({}, first.disk);
    exporter.start(makeRun());
    await turns(6);
    void exporter.flush();
    await transport.finish(0);
    expect(exporter.stats()).toMatchObject({ recovered: 2, sent: 2, open: 1 });
  });

  describe('while the disk has little room', () => {
    /** The names of those runs that the next process finds, and the bytes that were left when the first had closed. */
    async function keptOf(runs: readonly { name: string; length?: number }[]) {
      told();
      const { exporter, disk } = onDisk({});
      disk.bytesMax = 50_000;
      for (const { name, length = 0 } of runs) whole(exporter, { name, inputs: `{"text":"${'.'.repeat(length)}"}` });
      exporter.endProcess();
      const { spooled, dropped } = exporter.stats();
      expect(spooled + dropped).toBe(runs.length);
      expect(addsUp(exporter.stats())).toBe(true);
      const leftBytes = disk.bytesMax - disk.bytes;
      const next = onDisk({ limits: { batchRuns: 1_000 } }, disk);
      next.exporter.recover();
      await turns(6);
      void next.exporter.flush();
      const names = (await next.transport.finish(0)).map(({ delivery }) => delivery.run.name);
      expect(names).toHaveLength(spooled);
      return { names, leftBytes };
    }

    const numbered = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => ({ name: `run ${from + index}` }));

    it('keeps as many runs as fit, the oldest first [fault 55]', async () => {
      const runs = numbered(1_000, 5_000);
      const { names, leftBytes } = await keptOf(runs);
      expect(names).toEqual(runs.slice(0, names.length).map(({ name }) => name));
      // Less than one of them takes.
      expect(leftBytes).toBeLessThan(500);
    });

    it('keeps small ones although a large one does not fit', async () => {
      const large = { name: 'large', length: 100_000 };
      const { names } = await keptOf([...numbered(1, 4), large, ...numbered(4, 7)]);
      expect(names).toEqual(numbered(1, 7).map(({ name }) => name));
    });
  });

  it('tells flushes, those that wait and those that come later, of what it has left on disk', async () => {
    const { exporter } = onDisk({});
    whole(exporter);
    const waits = exporter.flush();
    await exporter.close({ timeoutMs: 0 });
    expect(await waits).toEqual({ ok: false, pending: 1 });
    expect(await exporter.flush({ timeoutMs: 0 })).toEqual({ ok: false, pending: 1 });
  });

  it('is waited for by no flush that comes later, nor by one that waits already', async () => {
    const { exporter, outage, time } = await waiting({});
    outage.failed();
    time.nowMs += 5_000;
    whole(exporter);
    await turns();
    const flushed = exporter.flush();
    await exporter.close({ timeoutMs: 0 });
    expect(exporter.stats()).toMatchObject({ spooled: 2 });
    expect(await flushed).toEqual({ ok: false, pending: 2 });
    expect(await exporter.flush()).toEqual({ ok: false, pending: 2 });
  });

  it('writes nothing twice when the process ends meanwhile', async () => {
    const { exporter, disk } = await waiting({});
    const bytes: number[] = [];
    const endProcess = (): void => {
      bytes.push(disk.bytes);
      exporter.endProcess();
      bytes.push(disk.bytes);
    };
    // As soon as all is on disk, while requests are still being broken off.
    disk.obstacle = (call, path) => void (call === 'write' && path.endsWith('.seg') && queueMicrotask(endProcess));
    await exporter.close({ timeoutMs: 0 });
    expect(bytes).toEqual([disk.bytes, disk.bytes]);
  });

  it('counts the end of a run as dropped that comes when its start is on disk', async () => {
    const { exporter } = onDisk({});
    const run = makeRun();
    exporter.start(run);
    await exporter.close({ timeoutMs: 0 });
    expect(exporter.stats()).toMatchObject({ spooled: 1, open: 0 });
    exporter.end(ended(run));
    expect(exporter.stats()).toMatchObject({ spooled: 0, droppedByReason: { closed: 1 } });
    expect(addsUp(exporter.stats())).toBe(true);
  });
});

it('an exporter that meets its spool limit keeps what is on disk, and the rest in memory', async () => {
  const { exporter, disk } = await waiting({ limits: { queueRuns: 4, spoolBytes: 3_000 } });
  for (let made = 0; made < 12; made++) whole(exporter);
  await turns();
  const { spooled, queued, dropped } = exporter.stats();
  expect(spooled).toBeGreaterThan(0);
  expect(disk.bytes).toBeLessThanOrEqual(3_000 + 512);
  expect(queued).toBeGreaterThan(0);
  expect(spooled + queued + dropped).toBe(12);
});

it('a disk that takes no more is asked once a second, and not in every call', async () => {
  let files = 0;
  const { exporter, disk, time } = await waiting({ limits: { queueRuns: 4, spoolBytes: 1 } });
  disk.obstacle = (call, path) => void (call === 'open' && path.endsWith('.seg') && files++);
  for (let made = 0; made < 12; made++) whole(exporter);
  await turns();
  expect(files).toBe(1);
  time.nowMs += 1_000;
  whole(exporter);
  expect(files).toBe(2);
});
