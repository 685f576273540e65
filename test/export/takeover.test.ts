import { expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer, type Reply } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { moduleText, type Started, startNode } from '../support/program.ts';

const RUNS = 20;
const OK: Reply = { status: 202 };

/** A service whose replies a test changes, and programs with one spool folder. `accepted` has the names of runs, each time that they were. */
async function makeWorld(reply: Reply) {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const accepted: string[] = [];
  const world = {
    accepted,
    reply: (): Reply => reply,
    arrived,
    requests: () => server.received.length,
    delivered,
    start,
  };
  const server = await ingestServer((request) => {
    const given = world.reply();
    if (given === OK)
      accepted.push(
        ...[...readJsonParts(request).values()].flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
      );
    return given;
  });
  onTestFinished(() => server.close());
  return world;

  function arrived(count: number): Promise<void> {
    return server.arrived(count);
  }

  /** Resolves when each of these runs has been accepted. */
  function delivered(names: string[]): Promise<void> {
    return vi.waitFor(() => expect(names.filter((name) => !accepted.includes(name))).toEqual([]), 15_000);
  }

  /** Starts a program that records runs under a name of its own, has `before` done first, and goes on until it is killed. */
  function start(name: string, before: string, runs = RUNS): Started {
    const program = startNode(
      moduleText(`
      import { configure, flush, traceable } from 'runspan';
      configure({ durability: 'write-ahead', limits: { batchRuns: 10, requestsInFlight: 1, lingerMs: 1 }, log: 'silent' });
      const work = (n) => traceable(() => n, { name: '${name} ' + n })();
      ${before}
      for (let n = 0; n < ${runs}; n++) work(n);
      console.log('recorded');
      setInterval(() => {}, 60_000);
    `),
      { RUNSPAN_ENDPOINT: server.url, RUNSPAN_SPOOL_DIR: folder.path },
    );
    onTestFinished(() => void program.child.kill('SIGKILL'));
    return program;
  }
}

async function kill({ child, ended }: Started): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

const namesOf = (name: string, runs = RUNS): string[] => Array.from({ length: runs }, (_, n) => `${name} ${n}`);

test('what a process had delivered before it was killed is not sent again, and the rest is', async () => {
  const world = await makeWorld(OK);
  const killed = world.start('killed', `for (const n of ['a', 'b', 'c']) work(n); console.log((await flush()).ok);`);
  await killed.printed(/true/);
  await killed.printed(/recorded/);
  await kill(killed);
  const later = world.start('later', '');
  await later.printed(/recorded/);
  await world.delivered([...namesOf('killed'), ...namesOf('later')]);

  expect(world.accepted.filter((name) => /[abc]$/.test(name)).sort()).toEqual(['killed a', 'killed b', 'killed c']);
});

test('segments that a second process has delivered before it is killed too are not sent again by a third', async () => {
  const world = await makeWorld('hold');
  const dead = ['one', 'two', 'three'];
  for (const name of dead) {
    const program = world.start(name, '');
    await program.printed(/recorded/);
    await kill(program);
  }
  let left = 4;
  world.reply = () => (left-- > 0 ? OK : 'hold');
  const before = world.requests();
  const second = world.start('second', '', 1);
  await world.arrived(before + 5);
  await kill(second);
  const delivered = dead.filter((name) => namesOf(name).every((run) => world.accepted.includes(run)));
  expect(delivered.length).toBeGreaterThan(0);

  const early = world.accepted.length;
  world.reply = () => OK;
  const third = world.start('third', '', 1);
  await third.printed(/recorded/);
  await world.delivered(dead.flatMap((each) => namesOf(each)));

  const again = world.accepted.slice(early);
  expect(again.filter((name) => delivered.some((each) => name.startsWith(each)))).toEqual([]);
});
