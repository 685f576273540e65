import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemFs } from '../../src/export/spool-fs.ts';
import {
  beat,
  isDead,
  leave,
  newOwnerName,
  type OwnerFacts,
  ownerToken,
  ownFacts,
  writeOwner,
} from '../../src/export/spool-owner.ts';
import { temporaryFolder } from '../support/folders.ts';

const NOW_MS = Date.UTC(2026, 10, 20);

/** This process as Linux would show it, so that the tests hold on any system. */
const OWN: OwnerFacts = {
  pid: process.pid,
  host: hostname(),
  bootId: 'boot 1',
  pidNamespace: 'pid:[1]',
  startTime: ownFacts(systemFs).startTime ?? '77',
};

const NEVER_GIVEN = 2 ** 22 + 1;

/** A folder of an owner of whom the last sign came so long ago. */
function makeOwner(facts: Partial<OwnerFacts> | string, silentMs: number): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const text = typeof facts === 'string' ? facts : JSON.stringify({ ...OWN, ...facts });
  writeFileSync(join(folder.path, 'owner.json'), text);
  beat(systemFs, folder.path, NOW_MS - silentMs);
  return folder.path;
}

const deadAfter = (facts: Partial<OwnerFacts> | string, silentMs: number, own = OWN) =>
  isDead(systemFs, makeOwner(facts, silentMs), own, NOW_MS);

describe('an owner', () => {
  it('has a name that no other has, of its process or another', () => {
    const names = Array.from({ length: 100 }, () => newOwnerName(NOW_MS));
    expect(new Set(names).size).toBe(100);
    expect(names[0]).toMatch(new RegExp(`^${process.pid}-${NOW_MS.toString(36)}-[0-9a-f]{16}$`));
    expect(new Set(names.map(ownerToken)).size).toBe(100);
    for (const name of ['bad', '..', `1-1-${'a'.repeat(15)}`, `1-1-${'a'.repeat(17)}`]) {
      expect(ownerToken(name)).toBeUndefined();
    }
  });

  it('says who it is as it is read again', () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const facts = ownFacts(systemFs);
    writeOwner(systemFs, folder.path, facts);
    expect(JSON.parse(readFileSync(join(folder.path, 'owner.json'), 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(facts)),
    );
    expect(facts).toMatchObject({ pid: process.pid, host: hostname() });
    expect(isDead(systemFs, folder.path, facts, Date.now() + 3_600_000)).toBe(false);
  });

  it('of this process is alive however long it is silent [fault 113]', () => {
    expect(deadAfter({}, 3_600_000)).toBe(false);
  });

  it('that has left is dead at once, also one of this process', () => {
    const folder = makeOwner({}, 0);
    leave(systemFs, folder);
    expect(isDead(systemFs, folder, OWN, NOW_MS)).toBe(true);
  });

  it('is dead at once when its number is nobody’s', () => {
    expect(deadAfter({ pid: NEVER_GIVEN }, 0)).toBe(true);
  });

  it.runIf(process.platform === 'linux')('is alive while its process is, and dead as soon as it is not', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    await once(child, 'spawn');
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
    const folder = makeOwner({ pid: child.pid as number, startTime: stat.split(') ')[1]?.split(' ')[19] }, 3_600_000);
    expect(isDead(systemFs, folder, OWN, NOW_MS)).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isDead(systemFs, folder, OWN, NOW_MS)).toBe(true);
  });

  it.runIf(process.platform === 'linux')('is dead when its number is another’s now [fault 62]', () => {
    expect(deadAfter({ pid: process.ppid, startTime: '1' }, 0)).toBe(true);
    expect(deadAfter({ pid: process.pid, startTime: '1' }, 0)).toBe(true);
  });

  it('of before a restart of the machine is dead at once, whoever has its number [fault 62]', () => {
    expect(deadAfter({ bootId: 'boot 0' }, 0)).toBe(true);
  });

  it.each<[string, Partial<OwnerFacts>]>([
    ['another machine', { host: 'elsewhere', bootId: 'boot 0' }],
    ['another container, where every program has number 1', { pidNamespace: 'pid:[2]', pid: process.pid }],
    ['a container that shows no processes', { pidNamespace: undefined, startTime: undefined }],
  ])('of %s is dead after a minute of silence [fault 62]', (_, facts) => {
    expect(deadAfter(facts, 59_999)).toBe(false);
    expect(deadAfter(facts, 60_000)).toBe(false);
    expect(deadAfter(facts, 60_001)).toBe(true);
  });

  it('on a system that tells no more than numbers is dead when its number is nobody’s and it is silent', () => {
    const bare = { bootId: undefined, pidNamespace: undefined, startTime: undefined };
    const own = { ...OWN, ...bare };
    expect(deadAfter({ ...bare, pid: NEVER_GIVEN }, 60_000, own)).toBe(false);
    expect(deadAfter({ ...bare, pid: NEVER_GIVEN }, 60_001, own)).toBe(true);
    expect(deadAfter({ ...bare, pid: process.ppid }, 3_600_000, own)).toBe(false);
  });

  it.each(['', '{', 'null', '[]', '{"pid":"1","host":"h"}', '{"pid":-1,"host":"h"}', `{"x":"${'y'.repeat(5_000)}"}`])(
    'that says nothing usable (%s) is judged by its silence',
    (text) => {
      expect(deadAfter(text, 3_600_000)).toBe(text.length < 4_096);
      expect(deadAfter(text, 0)).toBe(false);
    },
  );

  it('that never said who it is, is judged by the age of its folder', () => {
    const folder = makeOwner('', 0);
    const path = join(folder, 'inner');
    mkdirSync(path);
    for (const [silentMs, isGone] of [
      [60_000, false],
      [60_001, true],
    ] as const) {
      utimesSync(path, (NOW_MS - silentMs) / 1_000, (NOW_MS - silentMs) / 1_000);
      expect(isDead(systemFs, path, OWN, NOW_MS)).toBe(isGone);
    }
    expect(isDead(systemFs, join(folder, 'gone'), OWN, NOW_MS)).toBe(false);
  });

  it('is not read through a link', () => {
    const elsewhere = makeOwner({ pid: NEVER_GIVEN }, 0);
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    symlinkSync(join(elsewhere, 'owner.json'), join(folder.path, 'owner.json'));
    expect(isDead(systemFs, folder.path, OWN, Date.now())).toBe(false);
  });
});
