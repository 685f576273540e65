import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { type Started, startNode } from '../support/program.ts';
import { drain, killOwners, makeRecord, segmentsBelow, spoolFolder } from '../support/spool.ts';

const SPOOL = pathToFileURL(join(root, 'node_modules/.cache/modules/export/spool/spool.js')).href;

let started = 0;

/** A program with a spool in the folder; `record(n)` is one that `numberOf` knows. */
function startProgram(dir: string, code: string, flags: readonly string[] = []): Started {
  const record = { ...makeRecord(0), run: { ...makeRecord(0).run, inputs: '{"number":NUMBER}' } };
  const text = `
    const open = () => openSpool({
      spoolDir: ${JSON.stringify(dir)}, endpoint: new URL('http://127.0.0.1:4777'),
      workspaceId: undefined, apiKey: undefined, bytesMax: 1e8, ageMaxMs: 1e9,
    });
    const record = (number) => JSON.parse(${JSON.stringify(JSON.stringify(record))}.replace('NUMBER', number));
    const numbers = ({ records }) => records.map(({ run }) => JSON.parse(run.inputs).number);
    ${code}`;
  // A file: the workers of a cluster run the same one.
  const path = join(dirname(dir), `program-${++started}.mjs`);
  writeFileSync(path, `import { openSpool } from ${JSON.stringify(SPOOL)};\n${text}`);
  return startNode([...flags, path]);
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

describe('several processes with one folder', () => {
  it('claim each segment of a dead owner once, and the segments of those that are killed again [fault 61]', async () => {
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
    const spool = open();
    spool.takeOver();
    const orphaned = claims.slice(0, 2).flat();
    expect(drain(spool).sort((one, other) => one - other)).toEqual(orphaned.sort((one, other) => one - other));
    expect(spool.takeOver()).toBe(0);
    for (const { child } of programs.slice(2)) child.kill('SIGKILL');
    await Promise.all(programs.map(({ ended }) => ended));
  });

  it('that are a cluster have a folder each, the primary too [fault 63]', async () => {
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

  it('find all that was written ahead by one that was killed, as soon as it is', async () => {
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
    program.child.kill('SIGKILL');
    await program.ended;
    expect(spool.takeOver()).toBe(1);
    expect(drain(spool)).toEqual(Array.from({ length: 500 }, (_, number) => number));
  });

  it('are not held by a spool with something in it', async () => {
    const { dir } = spoolFolder();
    const program = startProgram(dir, 'open().append(record(1));');
    expect(await program.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(segmentsBelow(dir)).toHaveLength(1);
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
