import { expect, it } from 'vitest';

// The library reads the monotonic clock once, when it is loaded.
let nowMs = 0;
const { now } = performance;
performance.now = () => nowMs;
const { makeDeployment, setUp } = await import('./control-plane-set-up.ts');
performance.now = now;

const QUICK = { intervalMs: 1, timeoutMs: 20_000 };
const DEPLOYMENT = /^GET .*\/deployments\/[^/]+$/;
const REVISION = /^GET .*\/revisions\//;

it('gives a revision that appears 4 s after the update another 5 s until it can be read', async () => {
  const { server, client } = await setUp();
  server.statuses = ['DEPLOYED'];
  const made = await client.deployments.create(makeDeployment());
  server.next(/^PATCH/, (_, response) => {
    response.end(JSON.stringify(made));
    server.next(DEPLOYMENT, (_, read) => {
      nowMs += 4_000;
      read.end(JSON.stringify({ ...made, latest_revision_id: server.push(made.id).id }));
    });
    server.next(REVISION, (_, read) => {
      nowMs += 4_999;
      read.writeHead(404).end();
    });
  });
  const { revision } = await client.deployments.updateAndWait(made.id, { secrets: [] }, QUICK);
  expect(revision).toMatchObject({ status: 'DEPLOYED' });
  expect(revision?.id).not.toBe(made.latest_revision_id);
});
