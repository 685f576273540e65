import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { root } from '../support/folders.ts';
import { type Started, startNode } from '../support/program.ts';
import {
  drain,
  filesBelow,
  killOwners,
  makeRecord,
  segmentsBelow,
  silenceOwners,
  spoolFolder,
} from '../support/spool.ts';

const SPOOL = pathToFileURL(join(root, 'node_modules/.cache/modules/export/spool/spool.js')).href;

let started = 0;

/** A program with a spool in the folder; `record(n)` is one that `numberOf` knows. */
function startProgram(dir: string, code: string, flags: readonly string[] = []): Started {
  return startNode([...flags, writeProgram(dir, code)]);
}

function writeProgram(dir: string, code: string): string {
  const record = { ...makeRecord(0), run: { ...makeRecord(0).run, inputs: '{"number":NUMBER}' } };
  const text = `
    const open = () => new Spool({
      spoolDir: ${JSON.stringify(dir)}, endpoint: new URL('http://127.0.0.1:4777'),
      workspaceId: undefined, apiKey: undefined, bytesMax: 1e8, ageMaxMs: 1e9,
    });
    const record = (number) => JSON.parse(${JSON.stringify(JSON.stringify(record))}.replace('NUMBER', number));
    const numbers = ({ records }) => records.map(({ run }) => JSON.parse(run.inputs).number);
    ${code}`;
  // A file: the workers of a cluster run the same one.
  const path = join(dirname(dir), `program-${++started}.mjs`);
  writeFileSync(path, `import { Spool } from ${JSON.stringify(SPOOL)};\n${text}`);
  return path;
}

/** Claims when it is told to, says what it has, and then waits for whatever happens to it. */
const CLAIMANT = `
  const spool = open();
  process.stdout.write('ready\\n');
  process.stdin.once('data', () => {
    spool.takeOver();
    const claimed = [];
    for (let read = spool.next(); read !== undefined; read = spool.next()) claimed.push(...numbers(read));
    process.stdout.write('claimed ' + JSON.stringify(claimed) + '\\n');
    process.stdin.on('data', () => {});
  });`;

const UNSHARE = ['--pid', '--fork', '--mount-proc', '--kill-child'];

/** Namespaces need a privilege that not every system gives. */
const mayUnshare = spawnSync('unshare', [...UNSHARE, 'true']).status === 0;

describe('several processes with one folder', () => {
  it('claim each segment of a dead owner once, and the segments of those that are killed again', async () => {
    const { dir, open } = spoolFolder();
    const killed = open();
    const all = Array.from({ length: 60 }, (_, index) => index);
    for (const number of all) killed.spill([makeRecord(number)]);
    killOwners(dir);
    const programs = Array.from({ length: 4 }, () => startProgram(dir, CLAIMANT));
    await Promise.all(programs.map((program) => program.printed(/ready/)));
    for (const { child } of programs) child.stdin?.write('go\n');
    const claims = await Promise.all(
      programs.map(async (program) => JSON.parse((await program.printed(/claimed (.*)\n/))[1] as string) as number[]),
    );
    expect(claims.flat().sort((one, other) => one - other)).toEqual(all);

    for (const { child } of programs.slice(0, 2)) child.kill('SIGKILL');
    await Promise.all(programs.slice(0, 2).map(({ ended }) => ended));
    silenceOwners(dir, 30_000);
    const spool = open();
    spool.takeOver();
    const orphaned = claims.slice(0, 2).flat();
    expect(drain(spool).sort((one, other) => one - other)).toEqual(orphaned.sort((one, other) => one - other));
    expect(spool.takeOver()).toBe(0);
    for (const { child } of programs.slice(2)) child.kill('SIGKILL');
    await Promise.all(programs.map(({ ended }) => ended));
  });

  it('that are a cluster have a folder each, the primary too', async () => {
    const { dir, open } = spoolFolder();
    const program = startProgram(
      dir,
      `const { default: cluster } = await import('node:cluster');
       const spool = open();
       spool.append(record(cluster.isPrimary ? 0 : cluster.worker.id));
       if (cluster.isPrimary) {
         let waiting = 3;
         cluster.on('message', () => { if (--waiting === 0) process.stdout.write('written\\n'); });
         for (let count = 0; count < 3; count++) cluster.fork();
       } else process.send('written');`,
    );
    await program.printed(/written/);
    expect(new Set(segmentsBelow(dir).map(dirname)).size).toBe(4);
    const spool = open();
    expect(spool.takeOver()).toBe(0);
    program.child.kill('SIGKILL');
    await program.ended;
    killOwners(dir);
    spool.takeOver();
    expect(drain(spool).sort()).toEqual([0, 1, 2, 3]);
  });

  it('find all that was written ahead by one that was killed, 10 seconds later', async () => {
    const { dir, open } = spoolFolder();
    const program = startProgram(
      dir,
      `const spool = open();
       for (let number = 0; number < 500; number++) spool.append(record(number));
       process.stdout.write('written\\n');
       setInterval(() => {}, 1e6);`,
    );
    await program.printed(/written/);
    const spool = open();
    expect(spool.takeOver()).toBe(0);
    silenceOwners(dir, 3_600_000);
    // The process lives.
    expect(spool.takeOver()).toBe(0);
    program.child.kill('SIGKILL');
    await program.ended;
    silenceOwners(dir, 9_000);
    expect(spool.takeOver()).toBe(0);
    silenceOwners(dir, 11_000);
    expect(spool.takeOver()).toBe(1);
    expect(drain(spool)).toEqual(Array.from({ length: 500 }, (_, number) => number));
  });

  it('are not held by a spool with something in it', async () => {
    const { dir } = spoolFolder();
    const program = startProgram(dir, 'open().append(record(1));');
    expect(await program.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(segmentsBelow(dir)).toHaveLength(1);
  });

  it.runIf(mayUnshare)('lose nothing in separate process namespaces with the same host name', async () => {
    const { dir } = spoolFolder();
    const program = writeProgram(
      dir,
      `const spool = open();
       const started = Number(process.argv[2]);
       for (let number = started; number < started + 50; number++) spool.append(record(number));
       process.stdout.write('pid ' + process.pid + ' written\\n');
       process.stdin.on('data', () => {
         spool.takeOver();
         const claimed = [];
         for (let read = spool.next(); read !== undefined; read = spool.next()) claimed.push(...numbers(read));
         process.stdout.write('claimed ' + JSON.stringify(claimed) + '\\n');
       });`,
    );
    const start = async (number: number) => {
      const child = spawn('unshare', [...UNSHARE, process.execPath, program, String(number)]);
      onTestFinished(() => void child.kill('SIGKILL'));
      let output = '';
      child.stdout.on('data', (chunk) => {
        output += chunk;
      });
      await expect.poll(() => output, { timeout: 10_000 }).toContain('pid 1 written');
      const claim = async (): Promise<number[]> => {
        output = '';
        child.stdin.write('go');
        await expect.poll(() => output, { timeout: 10_000 }).toContain('\n');
        return JSON.parse(output.slice('claimed '.length));
      };
      return { child, claim };
    };
    const [one, other] = await Promise.all([start(0), start(50)]);
    expect(await one.claim()).toEqual([]);
    expect(await other.claim()).toEqual([]);
    one.child.kill('SIGKILL');
    await once(one.child, 'exit');
    silenceOwners(dir, 59_000);
    expect(await other.claim()).toEqual([]);
    silenceOwners(dir, 61_000);
    expect(await other.claim()).toEqual(Array.from({ length: 50 }, (_, number) => number));
  });

  const permission = ['--permission', '--experimental-permission'].find((flag) =>
    process.allowedNodeEnvironmentFlags.has(flag),
  );
  it.runIf(permission !== undefined)(
    'go on with memory alone, after one line, when Node forbids them the disk',
    async () => {
      const { dir } = spoolFolder();
      const code = `
      const spool = open();
      console.log(spool.takeOver(), spool.append(record(1)), spool.spill([record(1)]), spool.hasNext);
      spool.close();`;
      const { stdout, stderr } = await startProgram(dir, code, [permission as string, '--allow-fs-read=*']).ended;
      expect(stdout).toBe('0 undefined undefined false\n');
      expect(stderr.match(/runspan: .*/g)).toEqual([expect.stringContaining('(ERR_ACCESS_DENIED); runs are kept')]);
    },
  );
});

describe('an owner is dead', () => {
  /** Returns how many segments a process takes over from an owner with this `owner.json` and last heartbeat. */
  function claimed(change: (owner: Record<string, unknown>) => unknown, silentMs: number): number {
    const { dir, open } = spoolFolder();
    open().spill([makeRecord(1)]);
    const [path = ''] = filesBelow(dir).filter((name) => name.endsWith('owner.json'));
    const owner = change(JSON.parse(readFileSync(join(dir, path), 'utf8')));
    if (owner === undefined) rmSync(join(dir, path));
    else writeFileSync(join(dir, path), typeof owner === 'string' ? owner : JSON.stringify(owner));
    const seconds = (Date.now() - silentMs) / 1_000;
    utimesSync(join(dir, owner === undefined ? dirname(path) : path), seconds, seconds);
    return open().takeOver();
  }

  const NEVER_GIVEN = 2 ** 22 + 1;
  it
    .runIf(process.platform === 'linux')
    .each<[string, (owner: Record<string, unknown>) => unknown, number | undefined]>([
      ['never, in this process', (owner) => owner, undefined],
      ['after 10 s, if no process has its id', (owner) => ({ ...owner, pid: NEVER_GIVEN }), 10_000],
      ['after 10 s, if another process has its id', (owner) => ({ ...owner, startTime: '1' }), 10_000],
      [
        'never, while its process lives',
        (owner) => ({ ...owner, pid: process.ppid, startTime: startTimeOf(process.ppid) }),
        undefined,
      ],
      ['after 60 s, on another host', (owner) => ({ ...owner, host: 'elsewhere' }), 60_000],
      ['after 60 s, in another namespace', (owner) => ({ ...owner, pidNamespace: 'pid:[2]' }), 60_000],
      ['after 60 s, if it does not know its namespace', ({ pid, host }) => ({ pid, host }), 60_000],
      ['after 60 s, if its file is not JSON', () => '{', 60_000],
      ['after 60 s, if it has no file', () => undefined, 60_000],
    ])('%s', (_, change, silentMs = 3_600_000) => {
    const isNever = silentMs === 3_600_000;
    expect(claimed(change, silentMs - 900)).toBe(0);
    expect(claimed(change, silentMs + 100)).toBe(isNever ? 0 : 1);
    // The heartbeat of a machine whose clock is ahead.
    expect(claimed(change, -silentMs - 2_000)).toBe(isNever ? 0 : 1);
  });

  function startTimeOf(pid: number): string | undefined {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19];
  }
});
