import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { root } from './support/folders.ts';
import { listenInTest } from './support/listen-in-test.ts';
import { startNode } from './support/program.ts';

const MIB = 1024 * 1024;
const LIFE_MAX_MS = 60_000;

/** A service that answers everything with one status and keeps nothing of it. */
async function makeService(status: number): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(request.url === '/info' ? 404 : status).end());
  });
  return listenInTest(server);
}

/** Runs a program for a service that answers everything with one status, and returns what the program prints. */
async function printedBy(name: string, status: number, ...args: number[]): Promise<Record<string, unknown>> {
  const options = { RUNSPAN_ENDPOINT: await makeService(status) };
  const command = ['--expose-gc', `test/fixtures/${name}.mjs`, ...args.map(String)];
  const { code, stdout, stderr } = await startNode(command, options, root, LIFE_MAX_MS).ended;
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

test('a quarter of a million children of an open run leave nothing in the heap', {
  timeout: LIFE_MAX_MS,
}, async () => {
  const { first, last, ...ledger } = await printedBy('long-lived-parent', 202);
  expect(ledger).toEqual({ created: 250_001, sent: 250_001, dropped: 0 });
  // Five bytes for each of the runs in between would be more.
  expect((Number(last) - Number(first)) / MIB).toBeLessThan(1);
});

test('the retries of a large batch retain no more memory after 1,200 requests than after 400', {
  timeout: LIFE_MAX_MS,
}, async () => {
  // After some 200 requests the batch is split into single runs, of which each keeps the body of its request.
  const [runs, runBytes, few, many] = [100, 80_000, 400, 1_200];
  const { held, ...ledger } = await printedBy('retrying-program', 503, runs, runBytes, few, many);
  expect(ledger).toEqual({ created: runs, sent: 0, dropped: 0, waiting: runs });
  // A quarter of the batch.
  const [before = 0, after = 0] = held as number[];
  expect((after - before) / MIB).toBeLessThan(4);
});
