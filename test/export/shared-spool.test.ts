import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { ingestServer, type Received, type Reply } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { type Started, startNode } from '../support/program.ts';
import { segmentsBelow } from '../support/spool.ts';

/** Names of the runs in a request. */
const namesIn = (request: Received): string[] =>
  [...readJsonParts(request).values()].flatMap(({ name }) => (typeof name === 'string' ? [name] : []));

/** Programs with one spool, before a service that answers nothing until it is told to. */
async function programs() {
  const folder = temporaryFolder(root);
  onTestFinished(() => folder.remove());
  const dir = join(folder.path, 'spool');
  let reply: Reply = 'hold';
  const arrived: string[] = [];
  const server = await ingestServer((request) => {
    if (reply !== 'hold') arrived.push(...namesIn(request));
    return reply;
  });
  onTestFinished(() => server.close());
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
  it('deliver what a killed one has written ahead, each run by one of them', async () => {
    const { start, accept, arrived, dir } = await programs();
    const killed = start(`for (let n = 0; n < 200; n++) record('kept ' + n);
      process.stdout.write('written\\n');
      setInterval(() => {}, 1e6);`);
    await killed.printed(/written/);
    await kill(killed);
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

  it('that are a cluster have a folder each, the primary too', async () => {
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

  const permission = ['--permission', '--experimental-permission'].find((flag) =>
    process.allowedNodeEnvironmentFlags.has(flag),
  );
  it.runIf(permission !== undefined)(
    'go on with memory alone, after one line, when Node forbids them the disk',
    async () => {
      const { start, accept, arrived } = await programs();
      accept();
      const { stderr } = await start(`record('one'); await flush();`, [permission as string, '--allow-fs-read=*'])
        .ended;
      expect(arrived).toEqual(['one']);
      expect(stderr.match(/runspan: .*/g)).toEqual([expect.stringContaining('(ERR_ACCESS_DENIED); runs are kept')]);
    },
  );
});
