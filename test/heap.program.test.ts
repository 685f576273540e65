import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { root } from './support/folders.ts';
import { listenInTest } from './support/listen-in-test.ts';
import { startNode } from './support/program.ts';

const MIB = 1024 * 1024;
const LIFE_MAX_MS = 60_000;

/** A service that answers everything with one status and keeps nothing of it. */
async function makeService(status = 202): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(request.url === '/info' ? 404 : status).end());
  });
  return listenInTest(server);
}

test('a quarter of a million children of an open run leave nothing in the heap', {
  timeout: LIFE_MAX_MS,
}, async () => {
  const program = startNode(
    ['--expose-gc', 'test/fixtures/long-lived-parent.mjs'],
    { RUNSPAN_ENDPOINT: await makeService() },
    root,
    LIFE_MAX_MS,
  );
  const { code, stdout, stderr } = await program.ended;
  expect([code, stderr]).toEqual([0, '']);
  const { first, last, ...ledger } = JSON.parse(stdout) as Record<string, number>;
  expect(ledger).toEqual({ created: 250_001, sent: 250_001, dropped: 0 });
  // Five bytes for each of the runs in between would be more.
  expect((Number(last) - Number(first)) / MIB).toBeLessThan(1);
});

test('the retries of a large batch retain no more memory after 1,200 requests than after 400', {
  timeout: LIFE_MAX_MS,
}, async () => {
  // After some 200 requests the batch is split into single runs, of which each keeps the body of its request.
  const [runs, runBytes, few, many] = [100, 80_000, 400, 1_200];
  const program = startNode(
    ['--expose-gc', 'test/fixtures/retrying-program.mjs', ...[runs, runBytes, few, many].map(String)],
    { RUNSPAN_ENDPOINT: await makeService(503) },
    root,
    LIFE_MAX_MS,
  );
  const { code, stdout, stderr } = await program.ended;
  expect([code, stderr]).toEqual([0, '']);
  const { held, ...ledger } = JSON.parse(stdout) as { held: [number, number] };
  expect(ledger).toEqual({ created: runs, sent: 0, dropped: 0, waiting: runs });
  // A quarter of the batch.
  expect((held[1] - held[0]) / MIB).toBeLessThan(4);
});
