import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { root } from './support/folders.ts';
import { startNode } from './support/program.ts';

const MIB = 1024 * 1024;
const LIFE_MAX_MS = 60_000;

/** A service that takes everything and keeps nothing of it. */
async function makeService(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(request.url === '/info' ? 404 : 202).end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a quarter of a million runs below one that goes on leave nothing in the heap [fault 94]', {
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
