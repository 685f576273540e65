import { describe, expect, it } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { ingestServer, type Received, type Reply } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { type Ended, moduleText, runNode, startNode } from '../support/program.ts';

const PROGRAM = 'test/fixtures/hanging-exit-program.mjs';
const EXIT_FLUSH_MS = 300;
/** For a machine that is busy with other things; a program that waited for its requests would take 30 seconds. */
const BUSY_MS = 10_000;
const RUNS = 9;

const endings = [
  ['natural', { code: 0, signal: null }],
  ['exit', { code: 3, signal: null }],
  ['signal', { code: null, signal: 'SIGTERM' }],
] as const;

describe.each(['memory', 'spill', 'write-ahead'])(
  'a process with durability %s that ends while requests hang',
  (durability) => {
    it.each(endings)('keeps the limit and its exit code, and every run has its place: %s', async (ending, expected) => {
      const { ended, durationMs, kept } = await endedWhileHanging(durability, ending);
      const { code, signal, stdout, stderr } = ended;

      expect({ code, signal }).toEqual(expected);
      expect(durationMs).toBeLessThan(EXIT_FLUSH_MS + BUSY_MS);
      if (ending !== 'signal') expect(ledgerIn(stdout)).toEqual({ created: RUNS, total: RUNS });
      expect(stderr).toBe(durability === 'memory' ? 'runspan: the process ends with 9 runs not delivered\n' : '');
      expect(kept).toEqual(durability === 'memory' ? [] : Array.from({ length: RUNS }, (_, n) => n));
    });
  },
);

/** Ends a program while the service hangs, and then lets a later one deliver what is on disk: `kept` has the numbers of its runs. */
async function endedWhileHanging(durability: string, ending: string) {
  using folder = disposable(temporaryFolder());
  let reply: Reply = 'hold';
  const accepted: Received[] = [];
  await using server = await ingestServer((request) => {
    if (reply !== 'hold') accepted.push(request);
    return reply;
  });
  const env = { RUNSPAN_ENDPOINT: server.url, RUNSPAN_SPOOL_DIR: folder.path, RUNSPAN_DURABILITY: durability };
  const program = startNode([PROGRAM, durability, ending, String(EXIT_FLUSH_MS)], env, root);
  await program.printed(/recorded/);
  await server.arrived(1);
  const startedMs = Date.now();
  program.child.stdin?.write('go\n');
  const ended = await program.ended;
  const durationMs = Date.now() - startedMs;
  reply = { status: 202 };
  if (durability !== 'memory') await runNode(moduleText(LATER), env);
  return { ended, durationMs, kept: [...new Set(accepted.flatMap(numbersIn))].sort() };
}

/** Delivers what earlier processes have left. */
const LATER = `
  import { configure, flush, startRun, stats } from 'runspan';
  configure({ limits: { exitFlushMs: 20_000 } });
  startRun({ name: 'later' }).end();
  for (const endMs = Date.now() + 10_000; Date.now() < endMs && stats().recovered < ${RUNS}; ) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await flush();
`;

function numbersIn(request: Received): unknown[] {
  const parts = [...readJsonParts(request)].filter(([name]) => name.endsWith('.inputs'));
  return parts.map(([, { input, n }]) => input ?? n);
}

function ledgerIn(stdout: Ended['stdout']): { created: number; total: number } {
  const { created, places } = JSON.parse(stdout.trimEnd().split('\n').at(-1) as string);
  const { open, queued, inFlight, spooled, sent, dropped } = places;
  return { created, total: open + queued + inFlight + spooled + sent + dropped };
}

function disposable(folder: ReturnType<typeof temporaryFolder>) {
  return { path: folder.path, [Symbol.dispose]: () => folder.remove() };
}
