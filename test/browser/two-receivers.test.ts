// Several receivers of one store behind a load balancer.
import { createServer, request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { receiverRoutes } from '#src/receiver/all-routes.ts';
import { Access } from '#src/receiver/http/access/access.ts';
import { FixedKeys } from '#src/receiver/http/access/keyring.ts';
import { TokenSigner } from '#src/receiver/http/access/token-signer.ts';
import { Faults } from '#src/receiver/http/server/faults.ts';
import { listen as listenWith } from '#src/receiver/http/server/server.ts';
import type { MemoryStore } from '#src/receiver.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const KEY = 'a-key-of-some-length';

/** Starts two receivers of the store, and a server that sends each request to the next of them. */
async function balanced(store: MemoryStore): Promise<{ url: string; counts: number[] }> {
  const urls: string[] = [];
  const counts = [0, 0];
  let at = 0;
  const balancer = createServer((incoming, outgoing) => {
    at = (at + 1) % urls.length;
    counts[at] = (counts[at] ?? 0) + 1;
    const { method, url, headers } = incoming;
    const sent = request(urls[at] + (url ?? ''), { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 0, response.headers);
      response.pipe(outgoing);
    });
    sent.on('error', () => outgoing.destroy());
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  });
  const publicUrl = await listenInTest(balancer);
  for (let count = 0; count < 2; count += 1) {
    const rules = { host: '127.0.0.1', keys: new FixedKeys(KEY, undefined), allowedHosts: ['127.0.0.1'], publicUrl };
    const access = new Access(rules, new TokenSigner(store));
    const server = await listenWith(
      receiverRoutes({ store, strict: false, faults: new Faults(), access }),
      '127.0.0.1',
      0,
    );
    onTestFinished(server.close);
    urls.push(server.url);
  }
  return { url: publicUrl, counts };
}

test('the page works with a login at one of two receivers, also for writes', async () => {
  const { page, store, see } = await openPage([run(1, { name: 'agent', ms: 9 })]);
  const { url, counts } = await balanced(store);
  await page.goto(url);
  await page.getByLabel('Key').fill(KEY);
  await page.keyboard.press('Enter');
  await see('agent');
  for (let count = 0; count < 3; count += 1) {
    await page.goto(`${url}/?trace=${idOf(1)}&run=${idOf(1)}`);
    await page.getByRole('button', { name: 'Good' }).click();
    await page.locator('.feedback li').filter({ hasText: 'rating' }).first().waitFor();
    await page.goto(url);
    await see('agent');
  }
  expect(Math.min(...counts)).toBeGreaterThan(3);
  await page.goto('about:blank');
});
