import { expect, it } from 'vitest';

// The library reads the monotonic clock once, when it is loaded.
let nowMs = 0;
const { now } = performance;
performance.now = () => nowMs;
const { json, makeDeployment, setUp, text } = await import('./control-plane-set-up.ts');
performance.now = now;

it('a revision that appears 4 s after the update may be unknown for another 5 s', async () => {
  const { platform, client } = await setUp();
  platform.setStatuses(['DEPLOYED']);
  const made = await client.deployments.create(makeDeployment());
  platform.next(/^PATCH/, json(made));
  platform.next(/^GET/, json(made));
  platform.next(/^GET/, () => {
    nowMs += 4_000;
    return json({ ...made, latest_revision_id: platform.push(made.id) })();
  });
  platform.next(/^GET .*\/revisions\//, (request) => {
    nowMs += 4_999;
    return text('', 404)(request);
  });
  const { revision } = await client.deployments.updateAndWait(made.id, { secrets: [] }, { intervalMs: 1 });
  expect(revision).toMatchObject({ status: 'DEPLOYED' });
  expect(revision?.id).not.toBe(made.latest_revision_id);
});
