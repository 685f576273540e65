import { describe, expect, it, onTestFinished } from 'vitest';
import { ControlPlaneApi } from '../../src/clients/control-plane-api.ts';
import { lookDelayMs, RevisionWatch, type WatchTarget } from '../../src/clients/revision-watch.ts';
import { serviceApi } from '../../src/clients/service-api.ts';
import { SpellingTable } from '../../src/clients/spelling.ts';
import { serve } from '../http/server.ts';
import { makeDeployment, setUp } from './control-plane-set-up.ts';

const ID = '0193b3a0-ffff-7000-8000-00000000000f';

/** A watch that soon takes for lasting what may pass right after a creation. */
function makeWatch(url: string, target: Partial<WatchTarget>, timeoutMs: number): RevisionWatch {
  const service = serviceApi({ option: 'baseUrl', url, credentials: {} }, {});
  const api = new ControlPlaneApi(service, new SpellingTable({}));
  onTestFinished(() => api.close());
  const given = { deploymentId: ID, revisionId: ID, isReached: false, graceMs: 30, ...target };
  return new RevisionWatch(api, given, { intervalMs: 5, timeoutMs });
}

describe('a watch', () => {
  it('gives up soon where there has never been a service', async () => {
    const watch = makeWatch('http://127.0.0.1:1', {}, 20_000);
    await expect(watch.deployed()).rejects.toMatchObject({ code: 'RUNSPAN_NO_ANSWER' });
  });

  it('gives up at once where something else answers', async () => {
    const { url, seen } = await serve((_, response) => response.end('<h1>Welcome</h1>'));
    const watch = makeWatch(url, { graceMs: 20_000 }, 20_000);
    await expect(watch.deployed()).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_ANSWER' });
    expect(seen).toHaveLength(1);
  });

  it('waits for one that has answered before', async () => {
    const watch = makeWatch('http://127.0.0.1:1', { isReached: true }, 150);
    const cause = { code: 'RUNSPAN_NO_ANSWER' };
    await expect(watch.deployed()).rejects.toMatchObject({ code: 'RUNSPAN_TIMEOUT', cause });
  });

  it('gives up soon where the deployment is not known', async () => {
    const { server } = await setUp({}, { apiKey: undefined });
    // Longer than the first look takes, with which undici is loaded.
    const watch = makeWatch(server.url, { graceMs: 500 }, 20_000);
    await expect(watch.deployed()).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
    expect(server.calls.length).toBeGreaterThan(1);
  });

  it('finds no other revision where the latest stays the same', async () => {
    const { server, client } = await setUp({}, { apiKey: undefined });
    const { id, latest_revision_id } = await client.deployments.create(makeDeployment());
    const watch = (): RevisionWatch => makeWatch(server.url, { deploymentId: id, revisionId: undefined }, 20_000);
    expect(await watch().another(latest_revision_id)).toBeUndefined();
    expect(await watch().another(null)).toMatchObject({ id, latest_revision_id });
  });

  it('looks after one second, and less often by and by, up to five', () => {
    expect([1, 2, 3, 4, 5, 6, 1_000].map(lookDelayMs)).toEqual([1_000, 1_500, 2_250, 3_375, 5_000, 5_000, 5_000]);
  });
});
