import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type Revision, RevisionError } from '#src/clients/control-plane/revision.ts';
import { ControlPlane } from '#src/clients.ts';
import { startRun, withRun } from '#src/run/start-run.ts';
import { record } from '../instrument/recorder.ts';
import { broken, count, json, makeDeployment, never, setUp, text } from './control-plane-set-up.ts';
import { thrownBy } from './make-api.ts';

const NOWHERE = '0193b3a0-ffff-7000-8000-00000000000f';
const QUICK = { intervalMs: 1, timeoutMs: 20_000 };
const REVISION = /^GET .*\/revisions\//;

/** Creates a deployment, whose revisions have these statuses. */
async function created(...statuses: string[]) {
  const { platform, client } = await setUp();
  platform.setStatuses(statuses);
  const made = await client.deployments.create(makeDeployment());
  return { platform, client, made, id: made.id, latestId: made.latest_revision_id as string };
}

describe('a wait for a deployment', () => {
  it('ends when the revision is deployed, and reports each status once', async () => {
    const { platform, client } = await setUp();
    platform.setStatuses(['CREATING', 'QUEUED', 'QUEUED', 'BUILDING', 'HIBERNATING', 'UNKNOWN', 'UNKNOWN', 'DEPLOYED']);
    const seen: string[] = [];
    const onStatus = ({ status }: Revision): unknown => seen.push(status);
    const { deployment, revision } = await client.deployments.createAndWait(makeDeployment(), { ...QUICK, onStatus });
    expect(seen).toEqual(['CREATING', 'QUEUED', 'BUILDING', 'HIBERNATING', 'UNKNOWN', 'DEPLOYED']);
    expect(revision).toMatchObject({ id: deployment.latest_revision_id, status: 'DEPLOYED' });
    expect(deployment.source_config.custom_url).toBe(`${platform.url}/agents/${deployment.id}`);
    expect(count(platform, /^POST/)).toBe(1);
  });

  it.each(['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED'])(
    'rejects if the revision is %s',
    async (status) => {
      const { platform, client } = await setUp();
      platform.setStatuses(['QUEUED', status]);
      const error = await thrownBy(client.deployments.createAndWait(makeDeployment(), QUICK));
      const [{ id: deploymentId, latest_revision_id: revisionId } = {}] = await client.deployments.list().toArray(1);
      expect(error).toBeInstanceOf(RevisionError);
      expect(error).toMatchObject({ code: 'RUNSPAN_REVISION_FAILED', status, deploymentId, revisionId });
      expect(error.revision).toMatchObject({ id: revisionId, status });
      expect(error.message).toBe(
        `Revision ${revisionId} of deployment ${deploymentId} will not be deployed: its status is ${status}`,
      );
    },
  );

  it.each(['status_message', 'message', 'error'])('rejects with the reason in the field `%s`', async (field) => {
    const { platform, client } = await setUp();
    const reason = 'npm ci failed:\n  no package-lock.json';
    platform.next(REVISION, json({ id: 'r', status: 'BUILD_FAILED', [field]: reason, more: 1 }));
    const error = await thrownBy(client.deployments.createAndWait(makeDeployment(), QUICK));
    expect(error.message).toMatch(
      /will not be deployed: its status is BUILD_FAILED: npm ci failed:\n {2}no package-lock.json$/,
    );
    expect(error.revision).toMatchObject({ [field]: reason, more: 1 });
  });

  it.each(['BUILDING', undefined])('rejects after the timeout with the last status, here %s', async (status) => {
    const { platform, client } = await setUp();
    platform.setStatuses(['QUEUED', 'BUILDING']);
    if (status === undefined) platform.next(REVISION, never);
    const error = await thrownBy(client.deployments.createAndWait(makeDeployment(), { intervalMs: 1, timeoutMs: 500 }));
    expect(error).toMatchObject({ code: 'RUNSPAN_TIMEOUT', status });
    expect(error.message).toMatch(new RegExp(`was not deployed within 500 ms; its status is ${status ?? 'unknown'}$`));
  });

  it('waits for the latest revision, or for the given revision', async () => {
    const { platform, client, id, latestId } = await created('DEPLOYED');
    const second = platform.push(id);
    expect((await client.deployments.waitUntilDeployed(id, QUICK)).revision.id).toBe(second);
    const wait = { ...QUICK, revisionId: latestId };
    expect((await client.deployments.waitUntilDeployed(id, wait)).revision.id).toBe(latestId);
  });

  it('continues until there is a revision', async () => {
    const { platform, client, made } = await created('DEPLOYED');
    const none = { ...made, latest_revision_id: null };
    for (let polls = 0; polls < 3; polls++) platform.next(/^GET/, json(none));
    expect((await client.deployments.waitUntilDeployed(made.id, QUICK)).revision.id).toBe(made.latest_revision_id);
  });

  it('rejects if a later revision replaces the revision', async () => {
    const { platform, client, made } = await created('QUEUED');
    let latest = '';
    const onStatus = (): void => {
      latest = platform.push(made.id);
    };
    const error = await thrownBy(client.deployments.waitUntilDeployed(made.id, { ...QUICK, onStatus }));
    expect(error).toMatchObject({
      code: 'RUNSPAN_REVISION_SUPERSEDED',
      revisionId: made.latest_revision_id,
      status: 'QUEUED',
    });
    expect(error.message).toMatch(new RegExp(`was superseded by ${latest}$`));
  });

  it('continues after temporary failures', async () => {
    const { platform, client } = await setUp();
    platform.setStatuses(['QUEUED', 'DEPLOYED']);
    for (const status of [404, 429, 500, 502, 503]) platform.next(REVISION, json({}, status));
    platform.next(REVISION, broken);
    platform.next(REVISION, text('<html>'));
    expect((await client.deployments.createAndWait(makeDeployment(), QUICK)).revision.status).toBe('DEPLOYED');
    expect(count(platform, REVISION)).toBe(9);
  });

  it('rejects after a 404 if the revision was returned before', async () => {
    const { platform, client } = await setUp();
    const onStatus = (): void => platform.next(REVISION, json({ detail: 'gone' }, 404));
    const error = await thrownBy(client.deployments.createAndWait(makeDeployment(), { ...QUICK, onStatus }));
    expect(error).toMatchObject({ code: 'RUNSPAN_NOT_FOUND', detail: 'gone' });
  });

  it.each([400, 401, 403, 301])('rejects after a response with %d', async (status) => {
    const { platform, client } = await setUp();
    platform.next(REVISION, text('', status));
    expect(await thrownBy(client.deployments.createAndWait(makeDeployment(), QUICK))).toMatchObject({ status });
  });

  it('waits for the delay that the service requests', async () => {
    const { platform, client } = await setUp();
    platform.next(REVISION, text('', 429, { 'retry-after': '60' }));
    const waiting = client.deployments.createAndWait(makeDeployment(), { intervalMs: 1, timeoutMs: 600 });
    expect(await thrownBy(waiting)).toMatchObject({ code: 'RUNSPAN_TIMEOUT', cause: { status: 429 } });
    expect(count(platform, REVISION)).toBe(1);
  });

  it('has the last failure as the cause of a timeout', async () => {
    const { platform, client } = await setUp();
    const { id } = await client.deployments.create(makeDeployment());
    for (let polls = 0; polls < 200; polls++) platform.next(REVISION, text('', 503));
    const error = await thrownBy(client.deployments.waitUntilDeployed(id, { intervalMs: 5, timeoutMs: 600 }));
    expect(error).toMatchObject({ code: 'RUNSPAN_TIMEOUT', status: undefined, cause: { status: 503 } });
    expect(error.message).toMatch(/; its status is unknown; the last poll failed: \[GET\] "http.*": 503$/);
  });

  it('does not poll a service that cannot be reached at all', async () => {
    const client = new ControlPlane({ baseUrl: 'http://127.0.0.1:1', maxRetries: 0 });
    expect(await thrownBy(client.deployments.waitUntilDeployed(NOWHERE))).toMatchObject({
      code: 'RUNSPAN_NO_RESPONSE',
    });
  });

  it('includes the request before the wait in its timeout', async () => {
    const { platform, client, id } = await created('QUEUED');
    for (const [call, begin] of [
      [/^POST/, (options: object) => client.deployments.createAndWait(makeDeployment(), options)],
      [/^PATCH/, (options: object) => client.deployments.updateAndWait(id, { secrets: [] }, options)],
      [/redeploy$/, (options: object) => client.deployments.redeployAndWait(id, NOWHERE, options)],
    ] as const) {
      platform.next(call, never);
      const error = await thrownBy(begin({ timeoutMs: 300 }));
      expect(error).toMatchObject({ name: 'TimeoutError', code: 'RUNSPAN_TIMEOUT' });
    }
  });

  it('ends with the reason of the signal, between polls and during a poll, and removes its listeners', async () => {
    const { platform, client, id } = await created('QUEUED');
    const reason = new Error('enough');
    const between = new AbortController();
    const waiting = client.deployments.waitUntilDeployed(id, {
      intervalMs: 60_000,
      signal: between.signal,
      onStatus: () => setImmediate(() => between.abort(reason)),
    });
    expect(await thrownBy(waiting)).toBe(reason);
    const during = new AbortController();
    platform.next(REVISION, () => {
      during.abort(reason);
      return { status: 503 };
    });
    expect(await thrownBy(client.deployments.waitUntilDeployed(id, { ...QUICK, signal: during.signal }))).toBe(reason);
    for (const { signal } of [between, during]) expect(getEventListeners(signal, 'abort')).toEqual([]);
    const calls = platform.requests.length;
    const aborted = client.deployments.createAndWait(makeDeployment(), { ...QUICK, signal: AbortSignal.abort(reason) });
    expect(await thrownBy(aborted)).toBe(reason);
    expect(platform.requests.length).toBe(calls);
  });

  it('ends when the client is closed, between polls and during a poll', async () => {
    for (const hangs of [true, false]) {
      const { platform, client, id } = await created('QUEUED');
      const close = (): unknown => setImmediate(() => void client.close());
      if (hangs)
        platform.next(REVISION, (request) => {
          close();
          return never(request);
        });
      const waiting = client.deployments.waitUntilDeployed(id, { intervalMs: 60_000, onStatus: close });
      expect(await thrownBy(waiting)).toMatchObject({ code: 'RUNSPAN_NO_RESPONSE' });
    }
  });

  it('ends with an error of `onStatus`', async () => {
    const { client } = await setUp();
    const thrown = new Error('listener');
    const onStatus = (): never => {
      throw thrown;
    };
    expect(await thrownBy(client.deployments.createAndWait(makeDeployment(), { ...QUICK, onStatus }))).toBe(thrown);
    const later = async (): Promise<never> => onStatus();
    const rejected = client.deployments.createAndWait(makeDeployment(), { ...QUICK, onStatus: later });
    expect(await thrownBy(rejected)).toBe(thrown);
  });

  it('checks its options before anything is sent', async () => {
    const { platform, client } = await setUp();
    const { deployments } = client;
    const wrong = { timeoutMs: 0 };
    const given = { revisionId: NOWHERE } as object;
    for (const promise of [
      deployments.createAndWait(makeDeployment(), wrong),
      deployments.createAndWait(makeDeployment(), given),
      deployments.updateAndWait(NOWHERE, {}, wrong),
      deployments.redeployAndWait(NOWHERE, NOWHERE, wrong),
      deployments.waitUntilDeployed(NOWHERE, { intervalMs: 0 }),
    ]) {
      expect(await thrownBy(promise)).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    }
    const invalid = deployments.waitUntilDeployed(NOWHERE, { revisionId: 'x' });
    expect(await thrownBy(invalid)).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST' });
    expect(platform.requests).toEqual([]);
  });
});

describe('an update with a wait', () => {
  it('does not wait if it creates no revision, even if the last revision failed', async () => {
    const { platform, client, id } = await created('BUILD_FAILED');
    const patch = { source_config: { custom_url: 'https://a.example' } };
    const { deployment, revision } = await client.deployments.updateAndWait(id, patch, QUICK);
    expect([deployment.source_config.custom_url, revision]).toEqual(['https://a.example', undefined]);
    expect(platform.requests.map(({ method }) => method)).toEqual(['POST', 'PATCH']);
  });

  it('waits for the new revision if the response still names the old revision', async () => {
    const { platform, client, made } = await created('DEPLOYED');
    let latest: string | undefined;
    platform.next(/^PATCH/, () => {
      platform.next(/^GET/, () => {
        latest = platform.push(made.id);
        return { status: 200, body: made };
      });
      return { status: 200, body: made };
    });
    const { revision } = await client.deployments.updateAndWait(made.id, { secrets: [] }, QUICK);
    expect(revision?.id).toBe(latest);
  });
});

it('a creation rejects if the response has no id', async () => {
  const { platform, client } = await setUp();
  platform.next(/^POST/, json({}));
  const error = await thrownBy(client.deployments.createAndWait(makeDeployment(), QUICK));
  expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_RESPONSE', message: expect.stringMatching(/has no id$/) });
  expect(platform.requests.length).toBe(1);
});

it('a redeployment with a wait waits for the earlier revision if the service builds it again', async () => {
  const { platform, client, id, latestId } = await created('DEPLOYED');
  platform.next(/redeploy$/, json({ id, latest_revision_id: latestId }));
  const { revision } = await client.deployments.redeployAndWait(id, latestId, QUICK);
  expect(revision).toMatchObject({ id: latestId, status: 'DEPLOYED' });
});

it('a wait is recorded as one run, with the changing calls as child runs', async () => {
  const { client } = await setUp();
  const recorded = record();
  const secrets = [{ name: 'KEY', value: 'hunter2-hunter2' }];
  const sidecars = [{ name: 'proxy', image: 'p', env: [{ name: 'LEVEL', value: 'hunter2-hunter3' }] }];
  const deployment = makeDeployment({ secrets, source_config: { resource_spec: { sidecars } } });
  await withRun(startRun({ name: 'deploy' }), () => client.deployments.createAndWait(deployment, QUICK));
  const [outer, wait, create] = recorded.runs;
  expect(recorded.runs.map(({ name }) => name)).toEqual(['deploy', 'deployments.createAndWait', 'deployments.create']);
  expect([wait?.parent_run_id, create?.parent_run_id]).toEqual([outer?.id, wait?.id]);
  expect(wait).toMatchObject({ outputs: { revision: { status: 'DEPLOYED' } } });
  expect(JSON.stringify(recorded.runs)).not.toContain('hunter2');
});
