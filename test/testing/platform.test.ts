import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ControlPlane, type DeploymentCreate, type DeploymentPatch, type ResourceSpec } from '#src/clients.ts';
import type { Platform } from '#src/testing.ts';
import { API_KEY, GIT, makeDeployment, SOURCE, setUp, TENANT } from '../clients/control-plane-set-up.ts';
import { makeApi, POST, thrownBy } from '../clients/make-api.ts';
import { cases } from '../support/campaign.ts';

const NOWHERE = '0193b3a0-ffff-7000-8000-00000000000f';
const QUICK = { intervalMs: 1 };
const IMAGE = makeDeployment({ source: 'internal_container' });
const LISTENER = { compute_type: 'k8s', compute_id: 'east', compute_config: {} } as const;

const onCloud = () => setUp({}, { hosting: 'cloud' });

describe('a deployment to create', () => {
  const namespace = { listener_config: { k8s_namespace: 'a' } };
  const tarball = { graph_config_path: 'g', source_tarball_path: 'uploads/1/2' };
  it.each<[Partial<DeploymentCreate>, hosting: 'cloud' | 'self-hosted', detail: string]>([
    [{ ...GIT, source_config: { integration_id: NOWHERE } }, 'cloud', `Integration ID ${NOWHERE} not found.`],
    [{ source_config: { listener_id: NOWHERE } }, 'self-hosted', `Listener ID ${NOWHERE} not found.`],
    [{ source_config: namespace }, 'self-hosted', 'k8s_namespace: Only for listeners of compute type k8s'],
    [{ ...SOURCE, source_revision_config: tarball }, 'cloud', 'source_tarball_path: Expected a path from upload-url'],
  ])('is refused: %j on %s', async (fields, hosting, detail) => {
    const { client } = await setUp({}, { hosting });
    const error = await thrownBy(client.deployments.create(makeDeployment(fields)));
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining(detail) });
  });

  it('may have an integration, or a listener of the workspace and its namespace', async () => {
    const { client } = await onCloud();
    const [integration] = await client.integrations.list();
    const config = { ...GIT.source_config, integration_id: integration?.id ?? '' };
    const made = await client.deployments.create({ ...GIT, source_config: config });
    expect(made).toMatchObject({ source_config: config, source_revision_config: { image_uri: null } });
    expect(made.source_revision_config.repo_commit_sha).toMatch(/^[0-9a-f]{40}$/);
    expect(await client.integrations.repositories(config.integration_id)).toMatchObject([{ owner: 'acme' }]);
    const { client: other } = await setUp();
    const { id } = await other.listeners.create(LISTENER);
    const source_config = { listener_id: id.toUpperCase(), listener_config: { k8s_namespace: 'a' } };
    const { id: deployed } = await other.deployments.create(makeDeployment({ source_config }));
    const kept = await other.deployments.update(deployed, { source_config: { listener_config: {} } });
    expect(kept.source_config.listener_config).toEqual({ k8s_namespace: 'a' });
    expect(await thrownBy(other.listeners.create(LISTENER))).toMatchObject({ status: 409 });
    expect(await other.listeners.update(id, { version: '2' })).toMatchObject({ ...LISTENER, version: '2' });
    const to = (...k8s_namespaces: string[]) => other.listeners.update(id, { compute_config: { k8s_namespaces } });
    await to('b', 'a');
    const elsewhere = makeDeployment({ source_config: { ...source_config, listener_config: { k8s_namespace: 'c' } } });
    const detail = 'source_config.listener_config.k8s_namespace: Expected a namespace of the listener';
    expect(await thrownBy(other.deployments.create(elsewhere))).toMatchObject({ status: 400, detail });
    for (const call of [to('b'), to(), other.listeners.delete(id)])
      expect(await thrownBy(call)).toMatchObject({
        status: 409,
        detail: `Deployment ID ${deployed} uses the listener.`,
      });
    await other.deployments.create({ ...elsewhere, source_config: { listener_id: id } });
    for (const deployment of await other.deployments.list().toArray(9)) await other.deployments.delete(deployment.id);
    await other.listeners.delete(id);
    expect(await thrownBy(other.listeners.get(id))).toMatchObject({ detail: `Listener ID ${id} not found.` });
  });

  it.each<[given: ResourceSpec, added: ResourceSpec]>([
    [{ labels: { a: 'b' } }, {}],
    [{ memory_mb: 5 }, { memory_limit_mb: 10, queue_memory_mb: 5, queue_memory_limit_mb: 10 }],
    [{ queue_cpu: 1, queue_memory_mb: 5, queue_memory_limit_mb: 6 }, { queue_cpu_limit: 2 }],
    [
      { redis_cpu: 1.04, core_memory_mb: 7 },
      { redis_cpu: 1, redis_cpu_limit: 2, core_memory_limit_mb: 14 },
    ],
    [
      { db_cpu: 1, db_cpu_limit: 1.26, db_memory_mb: 8 },
      { db_cpu_limit: 1.3, db_memory_limit_mb: 16 },
    ],
  ])('with the resources %j also has %j', async (given, added) => {
    const { client } = await setUp();
    const resource_spec = { ...given, cpu_limit: given.cpu_limit ?? null };
    const made = await client.deployments.create(makeDeployment({ source_config: { resource_spec } }));
    expect(made.source_config.resource_spec).toEqual({ ...given, ...added });
  });

  it.each([
    ['prod', null, 'DEDICATED_S'],
    ['dev', null, 'SERVERLESS_S'],
    ['prod', 'SERVERLESS_L', 'SERVERLESS_L'],
  ])('of the type %s with the tier %s has the tier %s', async (deployment_type, deployment_tier, tier) => {
    const { client } = await onCloud();
    const made = await client.deployments.create({ ...GIT, source_config: { deployment_type }, deployment_tier });
    expect(made.deployment_tier).toBe(tier);
  });
});

describe('an update', () => {
  it.each<[DeploymentCreate, DeploymentPatch, message: string]>([
    [GIT, { source_revision_config: { repo_ref: 'refs/tags/v1' } }, '422 body.source_config.build_on_push: Cannot be'],
    [IMAGE, { source_revision_config: { repo_ref: 'x' } }, '400 source_revision_config.repo_ref: Only for git_host'],
    [IMAGE, { secret_references: [] }, '400 secret_references: Only for external_container'],
    [IMAGE, { revision_source: 'internal_source' }, 'graph_config_path: Field required for internal_source'],
    [GIT, { revision_source: 'internal_source', source_revision_config: { image_uri: 'x' } }, 'image_uri: Only for'],
  ])('that breaks a rule together with the deployment changes nothing: %j, %j', async (body, patch, message) => {
    const { client } = await onCloud();
    const { id } = await client.deployments.create(body);
    const before = await client.deployments.get(id);
    expect((await thrownBy(client.deployments.update(id, patch))).message).toContain(message);
    expect(await client.deployments.get(id)).toEqual(before);
  });

  it('keeps the fields that it leaves out, and creates a revision for build inputs, secrets and resources', async () => {
    const { client } = await setUp();
    const source_config = { resource_spec: { cpu: 1, memory_mb: 5 }, custom_url: 'https://a.example' };
    const secrets = [{ name: 'KEY', value: 'a value' }];
    const { id, latest_revision_id } = await client.deployments.create(makeDeployment({ secrets, source_config }));
    const same = await client.deployments.update(id, { image_version: '2', secrets: null, source_config: {} });
    expect(same).toMatchObject({ image_version: '2', secrets, source_config, latest_revision_id });
    const other = await client.deployments.update(id, { source_config: { resource_spec: { cpu: 2 } } });
    expect(other.source_config.resource_spec).not.toHaveProperty('memory_mb');
    expect(other.source_config.custom_url).toBe('https://a.example');
    expect(other.latest_revision_id).not.toBe(latest_revision_id);
    const git = { revision_source: 'git_host', source_config: { install_command: 'npm ci' } } as const;
    const detail = 'source: git_host is only for cloud deployments';
    expect(await thrownBy(client.deployments.update(id, git))).toMatchObject({ status: 400, detail });
    const again = await client.revisions.redeploy(id, latest_revision_id ?? '');
    const ids = (await client.revisions.list(id).toArray(9)).map((revision) => revision.id);
    expect(ids).toEqual([again.latest_revision_id, other.latest_revision_id, latest_revision_id]);
  });

  it('of a git host keeps the path of the graph, and the earlier revision can be deployed again', async () => {
    const { platform, client } = await onCloud();
    const { id, latest_revision_id, source_revision_config } = await client.deployments.create(GIT);
    const changed = await client.deployments.update(id, { source_revision_config: { repo_ref: 'next' } });
    expect(changed.source_revision_config).toMatchObject({ repo_ref: 'next', graph_config_path: 'graph.json' });
    const again = await client.revisions.redeploy(id, latest_revision_id ?? '');
    expect(again.source_revision_config).toEqual(source_revision_config);
    platform.push(id);
    const { repo_commit_sha, ...pushed } = (await client.deployments.get(id)).source_revision_config;
    expect(source_revision_config).toMatchObject(pushed);
    expect(repo_commit_sha).not.toBe(source_revision_config.repo_commit_sha);
  });
});

it('no requests and pushes lead to a deployment that could not be created', async () => {
  const { platform, client } = await onCloud();
  const { deployments, revisions } = client;
  const builds = (build_on_push: boolean): DeploymentPatch => ({ source_config: { build_on_push } });
  const from = (repo_ref: string): DeploymentPatch => ({ source_revision_config: { repo_ref } });
  const { source_revision_config } = SOURCE;
  const uploaded: DeploymentPatch = { revision_source: 'internal_source', source_revision_config };
  const take = async (id: string, step: DeploymentPatch | number | 'push'): Promise<unknown> => {
    if (step === 'push') return platform.push(id);
    if (typeof step === 'object') return deployments.update(id, step);
    const made = await revisions.list(id).toArray(9);
    return revisions.redeploy(id, made[step % made.length]?.id ?? '');
  };
  const tagThenBranch = [builds(false), from('refs/tags/v1'), from('main'), builds(true), 1];
  const change = fc.constantFrom(...tagThenBranch.slice(0, 4), uploaded, 'push' as const);
  const steps = fc.array(fc.oneof(change, fc.nat(8)), { minLength: 3, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const { id } = await deployments.create(GIT);
      for (const step of all) {
        const refusal = await take(id, step).catch((error) => error);
        if (typeof step === 'number' && refusal instanceof Error)
          expect(refusal).toMatchObject({ status: 400, detail: expect.stringContaining('build_on_push') });
        const { latest_revision_id, ...made } = await deployments.get(id);
        const { source } = await revisions.get(id, latest_revision_id ?? '');
        const source_config = { ...made.source_config, custom_url: null };
        const config = { ...made.source_revision_config, repo_commit_sha: null };
        if (source === GIT.source) await deployments.create({ ...GIT, source_config, source_revision_config: config });
      }
    }),
    { numRuns: cases(100, [tagThenBranch]), examples: [[tagThenBranch]] },
  );
});

describe('a revision', () => {
  const BUILT = 'CREATING QUEUED AWAITING_BUILD BUILDING AWAITING_DEPLOY DEPLOYING DEPLOYED';
  it.each([
    [SOURCE, BUILT],
    [GIT, BUILT],
    [IMAGE, 'CREATING QUEUED AWAITING_DEPLOY DEPLOYING DEPLOYED'],
  ])('of %j has the statuses %s', async (body, statuses) => {
    const { platform, client } = await onCloud();
    const seen: string[] = [];
    const onStatus = ({ status }: { status: string }): unknown => seen.push(status);
    const { deployment } = await client.deployments.createAndWait(body, { ...QUICK, onStatus });
    expect(seen.join(' ')).toBe(statuses);
    expect(deployment).toMatchObject({
      status: 'READY',
      active_revision_id: deployment.latest_revision_id,
      source_config: { custom_url: `${platform.url}/agents/${deployment.id}` },
    });
    platform.setStatuses(['QUEUED', 'DEPLOY_FAILED']);
    const latest_revision_id = platform.push(deployment.id);
    expect(await thrownBy(client.deployments.waitUntilDeployed(deployment.id, QUICK))).toMatchObject({
      status: 'DEPLOY_FAILED',
    });
    const { active_revision_id } = deployment;
    expect(await client.deployments.get(deployment.id)).toMatchObject({ latest_revision_id, active_revision_id });
  });

  it('keeps each status for `statusMs`', async () => {
    const { client } = await setUp({}, { statusMs: 86_400_000 });
    const { id, latest_revision_id } = await client.deployments.create(makeDeployment());
    for (let polls = 0; polls < 3; polls++) {
      expect(await client.revisions.get(id, latest_revision_id ?? '')).toMatchObject({ status: 'CREATING' });
      const awaiting = { status: 'AWAITING_DATABASE', active_revision_id: null, source_config: { custom_url: null } };
      expect(await client.deployments.get(id)).toMatchObject(awaiting);
    }
    const quick = await setUp({}, { statusMs: 1 });
    await quick.client.deployments.createAndWait(makeDeployment(), QUICK);
  });

  it('cannot be built before its source is uploaded', async () => {
    const { client } = await onCloud();
    const { id } = await client.deployments.create(SOURCE);
    const { object_path: source_tarball_path } = await client.deployments.uploadUrl(id);
    const patch = { source_revision_config: { source_tarball_path } };
    const wait = client.deployments.updateAndWait(id, patch, QUICK);
    expect(await thrownBy(wait)).toMatchObject({ status: 'BUILD_FAILED' });
  });

  it('is not pushed to an unknown deployment', async () => {
    const { platform } = await setUp();
    expect(() => platform.push(NOWHERE)).toThrow(`Expected the id of a deployment, got "${NOWHERE}"`);
  });
});

describe('resources', () => {
  it('of another workspace are not found', async () => {
    const keys = { [API_KEY]: [TENANT], other: [NOWHERE] };
    const { platform, client } = await setUp({}, { keys });
    const other = new ControlPlane({ baseUrl: platform.url, apiKey: 'other' });
    onTestFinished(() => other.close());
    const { id, latest_revision_id: revision } = await client.deployments.create(makeDeployment());
    const { id: listener } = await client.listeners.create(LISTENER);
    const calls = [other.deployments.get(id), other.revisions.get(id, revision ?? ''), other.deployments.delete(id)];
    for (const call of [...calls, other.deployments.deleteMany([id]), other.listeners.get(listener)])
      expect(await thrownBy(call)).toMatchObject({
        status: 404,
        detail: expect.stringMatching(/^\w+ ID .* not found/),
      });
    for (const list of [other.deployments.list(), other.listeners.list()]) expect(await list.toArray(9)).toEqual([]);
    const unknown = { detail: `Revision ID ${NOWHERE} not found.` };
    expect(await thrownBy(client.revisions.get(id, NOWHERE))).toMatchObject(unknown);
    expect(await client.deployments.deleteMany([id.toUpperCase(), NOWHERE])).toEqual({
      isPartial: true,
      response: { deleted: [id], failed: [NOWHERE] },
    });
  });

  it('are listed with filters', async () => {
    const { client } = await onCloud();
    await client.deployments.create(GIT);
    const fields = { name: 'a-1', source_config: { deployment_type: 'dev' }, image_version: '7' };
    const { id } = await client.deployments.create({ ...GIT, ...fields });
    const ids = async (filter: object): Promise<string[]> =>
      (await client.deployments.list(filter).toArray(9)).map((deployment) => deployment.id);
    for (const filter of [
      { nameContains: '1' },
      { deploymentType: 'dev' },
      { imageVersion: '7' },
      { deploymentIds: [id] },
    ])
      expect(await ids(filter)).toEqual([id]);
    for (const filter of [{ status: 'UNUSED' }, { tagValueIds: ['1'] }]) expect(await ids(filter)).toEqual([]);
    expect(await client.revisions.list(id, { status: ['BUILDING', 'CREATING'] }).toArray(9)).toHaveLength(1);
    expect(await client.revisions.list(id, { status: ['DEPLOYED'] }).toArray(9)).toEqual([]);
  });

  it.each<[change: object, status: number, detail: string]>([
    [{ source: 'git_host' }, 422, "body: Expected the platform's own names: hub, external, agent_file"],
    [{ source: 'hub', source_revision_config: {} }, 422, '_revision_config.agent_file: Field required for hub'],
    [{ source_revision_config: { agent_file: 5 } }, 422, 'body.source_revision_config.agent_file: Expected a string'],
    [{ source_revision_config: { agent_file: 'a' } }, 400, 'source_revision_config.agent_file: Only for hub and'],
    [{ source: 'other' }, 422, 'body.source: Expected one of hub, external, internal_container, internal_source'],
    [{ source: 'external' }, 400, 'source: external is only for self-hosted deployments'],
    [{ source_config: { graph_config_path: 'a' } }, 422, 'body.source_config.graph_config_path: Unknown field'],
  ])('with %j get %i in the own names of the platform', async (change, status, detail) => {
    const spelling = { git_host: 'hub', external_container: 'external', graph_config_path: 'agent_file' };
    const { platform } = await setUp({}, { hosting: 'cloud', spelling });
    const api = makeApi(platform.url, { headers: { 'x-api-key': API_KEY } });
    const call = api.json({ ...POST, path: '/v2/deployments', body: { ...IMAGE, ...change } });
    expect(await thrownBy(call)).toMatchObject({ status, detail: expect.stringContaining(detail) });
  });
});

describe('an upload', () => {
  const HEADERS = { 'content-type': 'application/gzip', 'x-goog-content-length-range': '0,209715200' };

  async function issued(): Promise<{ platform: Platform; url: string; path: string }> {
    const { platform, client } = await onCloud();
    const { id } = await client.deployments.create(SOURCE);
    const { upload_url: url, object_path: path } = await client.deployments.uploadUrl(id);
    return { platform, url: url ?? '', path };
  }

  it.each<[change: object, to: (url: string) => string, status: number, body: RegExp]>([
    [{}, (url) => url, 200, /^$/],
    [{}, (url) => url.replace('.tar.gz', '.zip'), 403, /SignatureDoesNotMatch/],
    [{}, (url) => url.replace('X-Expires=', 'X-Expires=9'), 403, /SignatureDoesNotMatch/],
    [{}, (url) => url.replace(/\?.*/, ''), 403, /SignatureDoesNotMatch/],
    [{ 'content-type': 'application/json' }, (url) => url, 403, /SignatureDoes.*content-type to be application.gzip/],
    [{ 'content-encoding': 'gzip' }, (url) => url, 403, /SignatureDoesNotMatch.*content-encoding to be absent/],
    [{ 'x-goog-content-length-range': '0,1' }, (url) => url, 403, /SignatureDoesNotMatch/],
    [{ 'x-api-key': 'a-key' }, (url) => url, 400, /CredentialsNotAllowed/],
    [{ authorization: 'Bearer token' }, (url) => url, 400, /CredentialsNotAllowed/],
  ])('with %j is answered', async (change, to, status, body) => {
    const { platform, url, path } = await issued();
    const response = await fetch(to(url), { method: 'PUT', headers: { ...HEADERS, ...change }, body: 'bytes' });
    expect([response.status, await response.text()]).toEqual([status, expect.stringMatching(body)]);
    expect(platform.uploads.get(path)).toEqual(status === 200 ? Buffer.from('bytes') : undefined);
  });

  it('is refused after its URL has expired, and without a length', async () => {
    const { url } = await issued();
    const stream = new Blob(['bytes']).stream();
    const init = { method: 'PUT', headers: HEADERS, body: stream, duplex: 'half' } as const;
    expect(await (await fetch(url, init)).text()).toContain('EntityTooLarge');
    expect((await fetch(url)).ok).toBe(false);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 900_001);
    expect(await (await fetch(url, { ...init, body: 'bytes' })).text()).toContain('ExpiredToken');
  });

  it('may be larger than other requests', async () => {
    const { platform, url, path } = await issued();
    const body = Buffer.alloc(65 * 1024 * 1024);
    expect((await fetch(url, { method: 'PUT', headers: HEADERS, body })).status).toBe(200);
    expect(platform.uploads.get(path)).toHaveLength(body.length);
  });
});

it('the platform answers in the order of the given answers, and breaks the connection if one throws', async () => {
  const { platform } = await setUp();
  const get = async (path: string) => (await fetch(platform.url + path)).status;
  const pattern = /^GET \/any/g;
  for (const status of [201, 202]) platform.next(pattern, () => ({ status }));
  platform.next(pattern, () => {
    throw new Error('broken');
  });
  expect([await get('/any'), await get('/any')]).toEqual([201, 202]);
  await expect(get('/any')).rejects.toThrow('fetch failed');
  expect(await get('//any')).toBe(401);
  expect(platform.requests.map(({ path, status }) => [path, status]).slice(2)).toEqual([
    ['/any', undefined],
    ['//any', 401],
  ]);
});
