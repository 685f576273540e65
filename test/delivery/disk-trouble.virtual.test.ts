// Disks and folders that fail: runs stay in memory, and one line reports it.
import '../support/virtual-timers.ts';

import fs, {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import type { SpoolFs } from '#src/delivery/spool/fs.ts';
import { callsOf, FS_FAULTS, failAt } from '../faults/faulty-fs.ts';
import { randomFrom } from '../faults/random.ts';
import { addsUp } from '../support/adds-up.ts';
import { cases } from '../support/campaign.ts';
import { advance, type Delivery, delivery, type Setup, settle, until } from '../support/delivery.ts';
import { root } from '../support/folders.ts';
import { fail } from '../support/memory-fs.ts';
import { machine } from '../support/processes.ts';
import type { Verdict } from '../support/scripted-service.ts';
import { filesBelow, killOwners, segmentsBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';
import { virtualClock } from '../support/virtual-timers.ts';

/** Interval at which a process looks whether its files still exist. */
const HEARTBEAT_MS = 5_000;

const writeAhead = { durability: 'write-ahead' } as const;

// `npm run test:faults -- fs` fails every call.
it.each(FS_FAULTS)('a disk on which a call fails with %s loses no promised run, and throws nothing', async (fault) => {
  onTestFinished(() => diagnostics.setLog('silent'));
  const random = randomFrom(fault.length);
  for (const durability of ['spill', 'write-ahead'] as const) {
    const calls = await callsOf(durability);
    const indexes = [...calls.keys()].filter((index) => fault !== 'short write' || calls[index] === 'writeSync');
    for (let round = 0; round < cases(6); round++) {
      await failAt(durability, indexes[Math.floor(random() * indexes.length)] as number, fault);
    }
  }
});

describe('a disk that is full', () => {
  it('is reported once, and tried again after a minute', async () => {
    const { disk, start } = machine();
    const process = await start({ options: writeAhead, reply: () => 'hold' });
    let attempts = 0;
    disk.obstacle = (_, path) => {
      attempts++;
      fail('ENOSPC', path);
    };
    process.wholes(3);
    const spoolLines = () => process.lines.filter((line) => line.includes('spool:'));
    expect(spoolLines()).toEqual([
      'warn: spool: cannot write in /spool (ENOSPC); runs are kept in memory only, and writing is retried every minute.',
    ]);
    const before = attempts;
    await advance(50_000);
    process.whole();
    expect(attempts).toBe(before);
    disk.obstacle = () => {};
    await advance(15_000);
    process.whole('canary');
    expect(disk.text).toContain('canary');
    expect(spoolLines()).toHaveLength(1);
  });

  it('is reported with the missing permission if it is closed to a Deno program', async () => {
    const { disk, start } = machine();
    const process = await start({ options: writeAhead, reply: () => 'hold' });
    const error = new Error('Requires write access to "/spool", run again with the --allow-write flag');
    error.name = 'NotCapable';
    disk.obstacle = () => {
      throw error;
    };
    process.whole();
    expect(process.lines).toEqual([
      expect.stringContaining('spool: cannot write in /spool (NotCapable: --allow-write); runs are kept'),
    ]);
  });

  it('is tried once more when the process ends', async () => {
    const { disk, start, deliverRest } = machine();
    const process = await start({ limits: { queueRuns: 4 }, reply: () => 'hold' });
    disk.obstacle = (_, path) => fail('ENOSPC', path);
    process.wholes(4);
    await settle();
    disk.obstacle = () => {};
    process.exit();

    expect((await deliverRest()).stats()).toMatchObject({ recovered: 4, sent: 5 });
  });
});

/** A folder on the real disk, in which processes follow each other. */
function realFolder() {
  const folder = testFolder();
  const dir = join(folder, 'spool');
  return {
    dir,
    beside: (name: string) => join(folder, name),
    /** A process with one run in write-ahead, before a service that does not answer. */
    process: async (setup: Setup = {}): Promise<Delivery> => {
      const made = await delivery({
        reply: () => 'hold',
        ...setup,
        options: { ...writeAhead, spoolDir: dir, ...setup.options },
      });
      made.whole('kept', { inputs: { canary: 1 } });
      await settle();
      return made;
    },
  };
}

/** Whether anything of a process with that folder is on disk, its lines, and whether its run arrives all the same. */
async function withoutDisk(spoolDir: string) {
  const { whole, flush, lines, stats } = await delivery({ options: { ...writeAhead, spoolDir } });
  whole();
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  return lines;
}

it('the runs of dead processes are delivered and deleted on a full disk', async () => {
  const folder = realFolder();
  const first = await folder.process();
  killOwners(folder.dir);
  virtualClock.clear();
  const wallMs = () => Date.now() + 120_000 + virtualClock.nowMs;
  const full: SpoolFs = { ...(fs as SpoolFs), writeSync: () => fail('ENOSPC', 'planted') };
  const next = await delivery({
    options: { ...writeAhead, spoolDir: folder.dir },
    endpoint: first.service.url,
    time: { fs: full, wallMs },
  });
  first.service.reply = () => 202;
  next.whole();
  await until(() => next.stats().sent === 2);

  expect(next.stats()).toMatchObject({ created: 1, recovered: 1, dropped: 0 });
  expect(segmentsBelow(folder.dir)).toEqual([]);
});

describe('a folder', () => {
  it.each<[string, (dir: string) => string]>([
    ['a file has its name', () => join(root, 'package.json', 'spool')],
    ['its name is too long', (dir) => `${dir}/${'x'.repeat(300)}`],
    ['the system has no folders there', () => '/proc/1/spool'],
    ['its name contains NUL', (dir) => `${dir}\0`],
  ])('that cannot be created is reported in one line, and runs arrive: %s', async (_, pathOf) => {
    expect(await withoutDisk(pathOf(realFolder().dir))).toEqual([
      expect.stringMatching(/^warn: spool: cannot write in .* \([A-Z_]+\); runs are kept in memory only/),
    ]);
  });

  it.each([
    ['spool', 'link'],
    ['spool/v1', 'link'],
    ['spool', 'file'],
    ['spool/v1', 'file'],
  ])('is not used if %s is a %s', async (planted, kind) => {
    const { dir, beside } = realFolder();
    mkdirSync(beside('elsewhere'));
    mkdirSync(dirname(beside(planted)), { recursive: true });
    if (kind === 'link') symlinkSync(beside('elsewhere'), beside(planted));
    else writeFileSync(beside(planted), '');
    const lines = await withoutDisk(dir);

    expect(readdirSync(beside('elsewhere'))).toEqual([]);
    expect(lines[0]).toMatch(/^warn: spool: .*; runs are kept in memory only, and writing is retried every minute\.$/);
  });

  it.runIf(process.getuid?.() === 0)('that belongs to another user is not used', async () => {
    const { dir } = realFolder();
    mkdirSync(dir);
    chownSync(dir, 12_345, 12_345);
    expect((await withoutDisk(dir))[0]).toContain('belongs to another user');
  });

  it('is created by the first write, and deleted with its last run', async () => {
    const folder = realFolder();
    const idle = await delivery({ options: { ...writeAhead, spoolDir: folder.dir } });
    await idle.flush();
    expect(existsSync(folder.dir)).toBe(false);
    const { service, flush, close } = await folder.process();
    expect(segmentsBelow(folder.dir)).toHaveLength(1);
    service.reply = () => 202;
    await flush();
    await close();
    expect(filesBelow(folder.dir)).toEqual([]);
  });

  it('that is deleted during use holds every run in memory again after a heartbeat, also for the next process', async () => {
    const steps = fc.array(fc.constantFrom('start', 'end', 'whole', 'wipe', 'wait'), { maxLength: 12 });
    const protocols = fc.constantFrom('runs' as const, 'otlp-json' as const);
    const property = fc.asyncProperty(
      steps,
      protocols,
      fc.integer({ min: 1, max: 3 }),
      async (plan, protocol, batchRuns) => {
        const { disk, start, deliverRest } = machine();
        const setup = { options: { ...writeAhead, protocol }, reply: (): Verdict => 'hold' };
        const earlier = await start(setup);
        earlier.whole('earlier');
        earlier.kill();
        const process = await start({ ...setup, limits: { batchRuns } });
        const open = [process.start()];
        await advance(200);
        for (const step of [...plan, 'wipe', 'start', 'whole']) {
          if (step === 'start') open.push(process.start());
          if (step === 'end') open.pop()?.end();
          if (step === 'whole') process.whole();
          if (step === 'wipe') disk.wipe();
          if (step === 'wait') await advance(HEARTBEAT_MS);
        }
        await advance(HEARTBEAT_MS);
        expect(process.lines.filter((line) => line.includes('are written again'))).toHaveLength(1);
        expect(addsUp(process.stats())).toBe(true);
        process.kill();
        const { created, recovered } = process.stats();
        expect((await deliverRest({ options: setup.options })).stats().recovered).toBe(created + recovered);
      },
    );
    await fc.assert(property, { numRuns: cases(40) });
  });

  it('of a dead owner is not taken over if the folder or its file is a link', async () => {
    const folder = realFolder();
    const first = await folder.process();
    const [segment = ''] = segmentsBelow(folder.dir);
    const owner = dirname(join(folder.dir, segment));
    renameSync(owner, folder.beside('elsewhere'));
    symlinkSync(folder.beside('elsewhere'), owner);
    killOwners(folder.beside(''));
    const next = await folder.process({ service: first.service });
    await advance(130_000);
    expect(next.stats()).toMatchObject({ created: 1, recovered: 0 });
    rmSync(owner);
    renameSync(folder.beside('elsewhere'), owner);
    renameSync(join(folder.dir, segment), folder.beside('segment'));
    symlinkSync(folder.beside('segment'), join(folder.dir, segment));
    await advance(130_000);

    expect(next.stats()).toMatchObject({ created: 1, recovered: 0 });
    expect(existsSync(folder.beside('segment'))).toBe(true);
  });

  it('that contains a link with the name of the next file is used without following the link', async () => {
    const folder = realFolder();
    const { service, whole, flush } = await folder.process();
    const [first = ''] = segmentsBelow(folder.dir);
    writeFileSync(folder.beside('victim'), 'precious');
    for (let number = 2; number < 6; number++) {
      symlinkSync(folder.beside('victim'), join(folder.dir, first.replaceAll('000000000001', `00000000000${number}`)));
    }
    service.reply = () => 202;
    await flush();
    service.reply = () => 'hold';
    for (let count = 0; count < 3; count++) whole('next');

    expect(readFileSync(folder.beside('victim'), 'utf8')).toBe('precious');
  });
});
