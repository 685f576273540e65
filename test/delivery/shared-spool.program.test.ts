import { mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { ingestServerInTest, type Reply } from '../support/ingest-server.ts';
import { runNames } from '../support/multipart-reader.ts';
import { type Started, startNode } from '../support/program.ts';
import { filesBelow, makeRecord, segmentsBelow, silenceOwners, spoolFolder } from '../support/spool.ts';

/** Programs with one spool, before a service that answers nothing until it is told to. */
async function programs() {
  const folder = temporaryFolder(root);
  onTestFinished(() => folder.remove());
  const dir = join(folder.path, 'spool');
  let reply: Reply = 'hold';
  const arrived: string[] = [];
  const server = await ingestServerInTest((request) => {
    if (reply !== 'hold') arrived.push(...runNames(request));
    return reply;
  });
  let started = 0;
  return {
    dir,
    arrived,
    accept: () => {
      reply = { status: 202 };
    },
    start(code: string, flags: readonly string[] = []): Started {
      // A file: the workers of a cluster run the same one.
      const path = join(folder.path, `program-${++started}.mjs`);
      writeFileSync(
        path,
        `import { configure, flush, stats, traceable } from 'runspan';
         const record = (name) => traceable(() => 'done', { name })();
         const until = async (holds) => { while (!holds()) await new Promise((resolve) => setImmediate(resolve)); };
         configure({ durability: 'write-ahead', limits: { lingerMs: 1 } });
         ${code}`,
      );
      mkdirSync(dirname(dir), { recursive: true });
      return startNode([...flags, path], { RUNSPAN_ENDPOINT: server.url, RUNSPAN_SPOOL_DIR: dir });
    },
  };
}

const kill = async ({ child, ended }: Started): Promise<void> => {
  child.kill('SIGKILL');
  await ended;
};

describe('several processes with one folder', () => {
  it('deliver the runs of a killed process, each once', async () => {
    const { start, accept, arrived, dir } = await programs();
    const killed = start(`for (let n = 0; n < 200; n++) record('kept ' + n);
      process.stdout.write('written\\n');
      setInterval(() => {}, 1e6);`);
    await killed.printed(/written/);
    await kill(killed);
    silenceOwners(dir, 30_000);
    accept();
    const later = Array.from({ length: 3 }, () =>
      start(`record('later');
        await until(() => stats().sent >= 1 && stats().spooled === 0);
        await flush();
        process.stdout.write('recovered ' + stats().recovered + '\\n');
        process.stdin.once('data', () => process.exit());`),
    );
    const counts = await Promise.all(
      later.map(async (program) => Number((await program.printed(/recovered (\d+)/))[1])),
    );
    for (const { child } of later) child.stdin?.write('go\n');
    await Promise.all(later.map(({ ended }) => ended));
    if (counts.reduce((sum, count) => sum + count) < 200) {
      // On systems that do not tell at once that a process is gone.
      const last = start(`record('last'); await until(() => stats().recovered > 0); await flush();`);
      await last.ended;
    }

    expect(arrived.filter((name) => name.startsWith('kept')).sort()).toEqual(
      Array.from({ length: 200 }, (_, n) => `kept ${n}`).sort(),
    );
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it('of a cluster have separate folders', async () => {
    const { start, dir } = await programs();
    const program = start(
      `const { default: cluster } = await import('node:cluster');
       record('one');
       if (cluster.isPrimary) {
         let waiting = 3;
         cluster.on('message', () => { if (--waiting === 0) process.stdout.write('written\\n'); });
         for (let count = 0; count < 3; count++) cluster.fork();
       } else process.send('written');
       setInterval(() => {}, 1e6);`,
    );
    await program.printed(/written/);
    expect(new Set(segmentsBelow(dir).map(dirname)).size).toBe(4);
    await kill(program);
  });

  const isFlag = (flag: string): boolean => process.allowedNodeEnvironmentFlags.has(flag);
  const permission = ['--permission', '--experimental-permission'].find(isFlag);
  it.runIf(permission !== undefined)('keep runs in memory, after one line, if Node denies writing', async () => {
    const { start, accept, arrived } = await programs();
    accept();
    const flags = [permission as string, '--allow-fs-read=*', ...['--allow-net'].filter(isFlag)];
    const { stderr } = await start(`record('one'); await flush();`, flags).ended;
    expect(arrived).toEqual(['one']);
    expect(stderr.match(/runspan: .*/g)).toEqual([expect.stringContaining('(ERR_ACCESS_DENIED); runs are kept')]);
  });
});

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
it.runIf(process.platform === 'linux').each<[string, (owner: Record<string, unknown>) => unknown, number | undefined]>([
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
])('an owner is dead %s', (_, change, silentMs = 3_600_000) => {
  const isNever = silentMs === 3_600_000;
  expect(claimed(change, silentMs - 900)).toBe(0);
  expect(claimed(change, silentMs + 100)).toBe(isNever ? 0 : 1);
  // The heartbeat of a machine whose clock is ahead.
  expect(claimed(change, -silentMs - 2_000)).toBe(isNever ? 0 : 1);
});

function startTimeOf(pid: number): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19];
}
