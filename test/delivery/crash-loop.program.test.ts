import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer, type Received, type Reply } from '../support/ingest-server.ts';
import { runNames } from '../support/multipart-reader.ts';
import { moduleText, runRunspan, startNode } from '../support/program.ts';
import { silenceOwners } from '../support/spool.ts';

const PROCESSES = 10;

/**
 * Records six runs, waits until runs of earlier processes are read where there are any, or a request has failed, prints the
 * names of its own that are on disk, and stays alive. With `spill` these are the five that it records after the first request has failed.
 */
const PROGRAM = `
  import { subscribe } from 'node:diagnostics_channel';
  import { configure, stats, traceable } from 'runspan';

  const [durability, name, mayHaveEarlier] = process.argv.slice(-3);
  let isAway = false;
  subscribe('runspan:delivery:outage', () => { isAway = true; });
  configure({ durability, limits: { requestTimeoutMs: 50, spillAfterMs: 1, lingerMs: 30, requestsInFlight: 1, exitFlushMs: 100 } });
  const record = (number) => traceable((value) => value, { name: name + ' ' + number })(number);
  const until = async (isTrue) => {
    while (!isTrue()) await new Promise((resolve) => setImmediate(resolve));
  };

  record(0);
  if (mayHaveEarlier === 'yes') await until(() => stats().recovered > 0 || isAway);
  if (durability === 'spill') await until(() => isAway);
  const numbers = [1, 2, 3, 4, 5];
  for (const number of numbers) record(number);
  if (durability === 'spill') await until(() => stats().spooled >= 5);
  else numbers.unshift(0);
  console.log('kept ' + JSON.stringify(numbers.map((number) => name + ' ' + number)) + '.');
  setInterval(() => {}, 60_000);
`;

describe.concurrent('a crash loop while the service is away', () => {
  it.for<[string, Reply]>([
    ['hangs', 'hold'],
    ['answers 503', { status: 503 }],
  ])(
    'loses no run kept on disk when the service %s and ten processes are killed',
    async ([, trouble], { onTestFinished }) => {
      const folder = temporaryFolder();
      onTestFinished(() => folder.remove());
      let reply: Reply = trouble;
      const accepted: Received[] = [];
      const server = await ingestServer((request) => {
        if (reply !== trouble) accepted.push(request);
        return reply;
      });
      onTestFinished(() => server.close());
      const env = { RUNSPAN_ENDPOINT: server.url, RUNSPAN_SPOOL_DIR: folder.path };

      const kept: string[] = [];
      for (let index = 0; index < PROCESSES; index++) {
        const durability = index % 2 === 0 ? 'write-ahead' : 'spill';
        const args = [durability, `process ${index}`, index === 0 ? 'no' : 'yes'];
        const { child, printed, ended } = startNode([...moduleText(PROGRAM), '--', ...args], env);
        kept.push(...JSON.parse((await printed(/^kept (.*)\.$/m))[1] as string));
        child.kill(index % 4 < 2 ? 'SIGKILL' : 'SIGTERM');
        expect((await ended).code).toBeNull();
        // Another process takes over the runs of a dead one 10 seconds after its last heartbeat.
        silenceOwners(folder.path, 30_000);
      }
      expect(kept).toHaveLength(5 * 6 + 5 * 5);

      reply = { status: 202 };
      const { code } = await runRunspan(['spool', 'send'], env);
      const arrived = new Set(accepted.flatMap(runNames));
      expect(kept.filter((name) => !arrived.has(name))).toEqual([]);
      expect(code).toBe(0);
    },
  );
});
