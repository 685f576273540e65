import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ControlPlane } from '#src/clients/control-plane/control-plane.ts';
import type { Deployment } from '#src/clients/control-plane/deployment.ts';
import { InvalidRequestError, InvalidResponseError } from '#src/clients/errors.ts';
import { startRun, withRun } from '#src/run/start-run.ts';
import { serve } from '../http/server.ts';
import { record } from '../instrument/recorder.ts';
import { API_KEY, broken, count, GIT, json, makeDeployment, setUp, TENANT, text } from './control-plane-set-up.ts';
import { thrownBy } from './make-api.ts';

const NOWHERE = '0193b3a0-ffff-7000-8000-00000000000f';

const PAGE = 'limit=20&offset=0';
const OTHER = '0193b3a0-ffff-7000-8000-00000000000e';
const LISTENER = { compute_type: 'k8s', compute_id: 'east', compute_config: { k8s_namespaces: ['agents'] } };
const DEPLOYMENT = `/v2/deployments/${NOWHERE}`;
const EVERY_FILTER = {
  nameContains: 'a',
  status: 'READY',
  remoteReconciled: false,
  tagValueIds: ['1', '2'],
  imageVersion: '0.3',
  deploymentType: 'prod',
  deploymentIds: [NOWHERE, OTHER],
};

type Row = [call: string, args: readonly unknown[], request: string, body?: unknown];

/**
 * Calls of the client, and their requests by the reference of the control plane. The demo lists the requests of the
 * other calls, which it sends.
 */
const rows: readonly Row[] = [
  ['deployments.create', [makeDeployment()], 'POST /v2/deployments', { ...makeDeployment(), secrets: [] }],
  ['deployments.list', [], `GET /v2/deployments?${PAGE}`],
  [
    'deployments.list',
    [EVERY_FILTER],
    `GET /v2/deployments?name_contains=a&status=READY&remote_reconciled=false&tag_value_ids=1,2&image_version=0.3&deployment_type=prod&deployment_ids=${NOWHERE},${OTHER}&${PAGE}`,
  ],
  ['deployments.update', [NOWHERE, { image_version: '1' }], `PATCH ${DEPLOYMENT}`, { image_version: '1' }],
  ['deployments.delete', [NOWHERE, { deleteTracingProject: true }], `DELETE ${DEPLOYMENT}?delete_tracing_project=true`],
  [
    'deployments.deleteMany',
    [[NOWHERE, OTHER]],
    `DELETE /v2/deployments?deployment_ids=${NOWHERE}&deployment_ids=${OTHER}`,
  ],
  [
    'revisions.list',
    [NOWHERE, { status: ['DEPLOYED', 'QUEUED'], remoteReconciled: true, limit: 100, offset: 5 }],
    `GET ${DEPLOYMENT}/revisions?status=DEPLOYED,QUEUED&remote_reconciled=true&limit=100&offset=5`,
  ],
  ['listeners.list', [], `GET /v2/listeners?${PAGE}`],
  ['listeners.get', [NOWHERE], `GET /v2/listeners/${NOWHERE}`],
  ['listeners.create', [LISTENER], 'POST /v2/listeners', LISTENER],
  ['listeners.update', [NOWHERE, { version: '2' }], `PATCH /v2/listeners/${NOWHERE}`, { version: '2' }],
  ['listeners.delete', [NOWHERE], `DELETE /v2/listeners/${NOWHERE}`],
  ['integrations.repositories', [NOWHERE], `GET /v1/integrations/git_host/${NOWHERE}/repos`],
];

type Calls = Readonly<Record<string, Readonly<Record<string, (...args: readonly unknown[]) => PromiseLike<unknown>>>>>;

it.each(rows)('%s%j sends %s', async (call, args, request, body) => {
  const answer = call.startsWith('integrations') ? '[]' : '{"resources":[],"region":"eu"}';
  const { url, seen } = await serve((_, response) => response.end(answer));
  const client = new ControlPlane({ baseUrl: url, apiKey: API_KEY });
  onTestFinished(() => client.close());
  const [group = '', method = ''] = call.split('.');

  const result = await (client as unknown as Calls)[group]?.[method]?.(...args);

  expect(seen).toHaveLength(1);
  expect(`${seen[0]?.method} ${decodeURIComponent(seen[0]?.url ?? '')}`).toBe(request);
  expect(seen[0]?.headers['x-api-key']).toBe(API_KEY);
  expect(seen[0]?.body ? JSON.parse(seen[0].body) : undefined).toEqual(body);
  // A later version of the service may add a field, here `region`.
  if (/create|update$|get$/.test(call)) expect(result).toEqual(JSON.parse(answer));
});

describe('deployments', () => {
  it('are listed page by page, with a filter', async () => {
    const { platform, client } = await setUp();
    for (const name of ['a-1', 'a-2', 'b-1', 'a-3', 'a-4', 'a-5'])
      await client.deployments.create(makeDeployment({ name }));
    const names: string[] = [];
    for await (const { name } of client.deployments.list({ nameContains: 'a-', limit: 2 })) names.push(name);
    expect(names).toEqual(['a-1', 'a-2', 'a-3', 'a-4', 'a-5']);
    expect(platform.requests.slice(6).map(({ query }) => query.toString())).toEqual([
      'name_contains=a-&limit=2&offset=0',
      'name_contains=a-&limit=2&offset=2',
      'name_contains=a-&limit=2&offset=4',
    ]);
    const page = await client.deployments.list({ limit: 5, offset: 1 });
    expect([page.items.length, page.hasNext]).toEqual([5, true]);
    expect([(await page.next())?.items, (await page.next())?.hasNext]).toEqual([[], false]);
  });

  it('are listed to the end if the offset does not advance or is missing', async () => {
    const { platform, client } = await setUp();
    const items = [{ name: 'a' }];
    for (const offset of [0, undefined, 'x', -1]) {
      platform.next(/GET/, json({ resources: items, offset }));
      const page = await client.deployments.list({ limit: 1 });
      expect([page.items, page.hasNext]).toEqual([items, false]);
    }
  });

  it('are deleted up to a hundred at once, with a partial result', async () => {
    const { url, seen } = await serve((_, response) =>
      response.writeHead(seen.length === 1 ? 207 : 200).end('{"failed":["x"]}'),
    );
    const { deployments } = new ControlPlane({ baseUrl: url });
    const hundred = Array.from({ length: 100 }, () => NOWHERE);
    expect(await deployments.deleteMany(hundred)).toEqual({ isPartial: true, response: { failed: ['x'] } });
    expect(await deployments.deleteMany([NOWHERE])).toMatchObject({ isPartial: false });
    for (const refused of [[], [...hundred, NOWHERE], ['x'], 'x' as unknown as string[]]) {
      expect(await thrownBy(deployments.deleteMany(refused))).toBeInstanceOf(InvalidRequestError);
    }
    expect(seen).toHaveLength(2);
  });

  it('are deleted if the retry of a deletion finds nothing', async () => {
    const { platform, client } = await setUp();
    const { id } = await client.deployments.create(makeDeployment());
    platform.next(/^DELETE/, async () => {
      await client.deployments.delete(id);
      return { status: 503 };
    });
    await client.deployments.delete(id);
    expect(count(platform, /^DELETE/)).toBe(3);
    expect(await thrownBy(client.deployments.delete(id))).toMatchObject({ status: 404 });
  });

  it('are not sent if an id or option is invalid', async () => {
    const { platform, client } = await setUp();
    const { deployments } = client;
    const broken = [
      ...[deployments.get('../listeners'), deployments.delete(''), deployments.uploadUrl('x')],
      ...[client.revisions.list('x'), client.revisions.get(NOWHERE, 'x'), client.revisions.redeploy('x', NOWHERE)],
      ...[client.listeners.get('x'), client.integrations.repositories('x')],
    ];
    for (const promise of broken) expect(await thrownBy(promise)).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST' });
    for (const list of [
      deployments.list({ limit: 0 }),
      deployments.list({ limit: 101 }),
      deployments.list({ offset: -1 }),
      deployments.deleteMany([NOWHERE], { deploymentIds: [NOWHERE] } as object),
    ])
      expect(await thrownBy(list)).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    expect(platform.requests).toEqual([]);
  });
});

describe('listeners and integrations', () => {
  it.each([1, 2, 3, 4, 5])('are listed from a service that returns arrays, with the limit %d', async (limit) => {
    const ids = ['a', 'b', 'c', 'd'].map((id) => ({ id }));
    const names = ['a', 'b', 'c', 'd'].map((name) => ({ name }));
    const read = async (pageOf: (query: URLSearchParams) => object[]): Promise<object[]> => {
      const { platform, client } = await setUp();
      for (let calls = 0; calls < 9; calls++)
        platform.next(/GET/, ({ url }) => json(pageOf(new URL(`http://a${url}`).searchParams))());
      return client.listeners.list({ limit }).toArray(99);
    };
    const paged = (query: URLSearchParams): object[] => {
      const offset = Number(query.get('offset'));
      return ids.slice(offset, offset + Number(query.get('limit')));
    };
    expect(await read(paged)).toEqual(ids);
    expect(await read(() => ids)).toEqual(ids);
    expect(await read(() => names)).toEqual(names);
  });

  it('that are not a list reject', async () => {
    const { platform, client } = await setUp();
    platform.next(/GET/, json({ resources: [] }));
    expect(await thrownBy(client.integrations.list())).toBeInstanceOf(InvalidResponseError);
  });
});

describe('a client', () => {
  it('translates the names of the service, and sends the path and the workspace', async () => {
    const spelling = { git_host: 'hub', graph_config_path: 'agent_config_path', internal_container: 'own_image' };
    const { platform, client } = await setUp(
      { spelling, tenantId: TENANT, bearerToken: 'token-of-mine' },
      { spelling, hosting: 'cloud' },
    );
    const made = await client.deployments.create(GIT);
    expect(platform.requests[0]).toMatchObject({
      path: '/v2/deployments',
      headers: { 'x-api-key': API_KEY, 'x-tenant-id': TENANT, authorization: 'Bearer token-of-mine' },
      body: { source: 'hub', source_revision_config: { agent_config_path: 'graph.json' } },
    });
    expect(made).toMatchObject({ source: 'git_host', source_revision_config: { graph_config_path: 'graph.json' } });
    expect(made.source_revision_config).not.toHaveProperty('agent_config_path');
    expect(await client.deployments.list().toArray(5)).toMatchObject([{ source: 'git_host' }]);
    platform.next(/GET/, json([{ source: 'hub' }]));
    expect(await client.deployments.list().toArray(5)).toMatchObject([{ source: 'git_host' }]);
    await client.deployments.update(made.id, {
      revision_source: 'internal_container',
      source_config: { build_on_push: false },
      source_revision_config: { image_uri: 'agent:2' },
    });
    expect(platform.requests.at(-1)?.body).toMatchObject({ revision_source: 'own_image' });
    const revision = await client.revisions.get(made.id, made.latest_revision_id ?? '');
    expect(revision).toMatchObject({ source: 'git_host', source_revision_config: { graph_config_path: 'graph.json' } });
    await client.integrations.list();
    expect(platform.requests.at(-1)?.path).toBe('/v1/integrations/hub/install');
  });

  it.each<[option: string, options: object]>([
    ['baseUrl', { baseUrl: 'nowhere' }],
    ['apiKey', { apiKey: 'two words' }],
    ['tenantId', { tenantId: '' }],
    ['bearerToken', { bearerToken: 7 }],
    ['spelling', { spelling: { git_host: 'a/b' } }],
    ['spelling', { spelling: { git_host: '' } }],
    ['spelling', { spelling: { git: 'hub' } }],
    ['spelling', { spelling: { git_host: 'hub', external_container: 'hub' } }],
    ['spelling', { spelling: { git_host: 'external_container' } }],
    ['key', { key: 'k' }],
  ])('refuses the option %s: %j', (option, options) => {
    const make = (): ControlPlane => new ControlPlane({ baseUrl: 'http://127.0.0.1:1', ...options });
    expect(make).toThrow(
      expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringContaining(`\`${option}\``) }),
    );
  });

  it('hides keys and secret values from `inspect`, but keeps the values', async () => {
    const { platform, client } = await setUp({ tenantId: TENANT, bearerToken: 'token-of-mine' });
    const secrets = [{ name: 'KEY', value: 'hunter2-hunter2' }];
    const made = await client.deployments.create(makeDeployment({ secrets }));
    const listed = await client.deployments.list();
    const shown = [client, client.deployments, made, { ...made }, made.secrets, listed].map((value) =>
      inspect(value, { depth: 9, showHidden: true }),
    );
    for (const text of shown) expect(text).not.toMatch(/hunter2|token-of-mine|key-of-the/);
    expect(inspect(made.secrets)).toBe("[ { name: 'KEY', value: '[secret]' } ]");
    expect(made.secrets).toEqual(secrets);
    expect(JSON.stringify({ ...made }.secrets)).toBe(JSON.stringify(secrets));
    await client.deployments.update(made.id, { secrets: made.secrets });
    expect(platform.requests.at(-1)?.body).toEqual({ secrets });
  });

  it('reads a response that is nested more deeply than the call stack allows', async () => {
    const { platform, client } = await setUp();
    const depth = 20_000;
    platform.next(/GET/, text(`{"more":${'['.repeat(depth)}${']'.repeat(depth)}}`));
    expect(await client.deployments.get(NOWHERE)).toHaveProperty('more');
  });

  it('masks secret values in an error, even if the service repeats them', async () => {
    const { platform, client } = await setUp();
    const secrets = [{ name: 'KEY', value: 'hunter2"\\hunter2' }];
    const msg = `got ${secrets[0]?.value}`;
    const detail = [{ loc: ['body', 'secrets'], msg, type: 'x', input: { ...makeDeployment(), secrets } }];
    platform.next(/POST/, () => ({ status: 422, headers: { 'x-echo': API_KEY }, body: { detail } }));
    const error = await thrownBy(client.deployments.create(makeDeployment({ secrets })));
    const sidecars = [{ name: 'proxy', image: 'p', env: [{ name: 'API_KEY', value: 'hunter3-hunter3' }] }];
    platform.next(/POST/, json({ detail: JSON.stringify({ sidecars }) }, 400));
    const other = await thrownBy(
      client.deployments.create(makeDeployment({ source_config: { resource_spec: { sidecars } } })),
    );
    for (const one of [error, other]) {
      const text = inspect(one, { showHidden: true, depth: 9 }) + JSON.stringify(one) + one.message;
      expect(text).not.toMatch(/hunter|key-of-the/);
    }
    expect(error).toMatchObject({
      code: 'RUNSPAN_UNPROCESSABLE',
      errors: [{ loc: ['body', 'secrets'], msg: 'got [secret]' }],
    });
  });

  it('rejects a response that is not a resource', async () => {
    const { platform, client } = await setUp();
    for (const body of ['', '[]', 'null', '"text"', '7']) {
      platform.next(/GET/, text(body));
      expect(await thrownBy(client.deployments.get(NOWHERE))).toBeInstanceOf(InvalidResponseError);
    }
    for (const body of ['', 'null', '{"items":[]}']) {
      platform.next(/GET/, text(body));
      expect((await thrownBy(client.deployments.list())).message).toMatch(
        /200, but the response has no list of resources$/,
      );
    }
  });
});

it('a call within a run is recorded as a child run without secret values', async () => {
  const { client } = await setUp();
  const recorded = record();
  const outer = startRun({ name: 'deploy' });
  const sidecars = [{ name: 'proxy', image: 'p', env: [{ name: 'LEVEL', value: 'hunter3-hunter3' }] }];
  const made = await withRun(outer, async (): Promise<Deployment> => {
    const secrets = [{ name: 'KEY', value: 'hunter2-hunter2' }];
    const created = await client.deployments.create(
      makeDeployment({ secrets, source_config: { resource_spec: { sidecars } } }),
    );
    await client.deployments.get(created.id);
    await client.deployments.list({ limit: 1 });
    await client.deployments.uploadUrl(created.id);
    await client.integrations.list();
    await client.deployments.delete(created.id);
    return created;
  });
  outer.end();
  const runs = recorded.runs.filter(({ parent_run_id }) => parent_run_id === outer.id);
  expect(runs.map(({ name, run_type }) => `${name} ${run_type}`)).toEqual([
    'deployments.create tool',
    'deployments.get tool',
    'deployments.list tool',
    'deployments.uploadUrl tool',
    'integrations.list tool',
    'deployments.delete tool',
  ]);
  const env = [{ name: 'LEVEL', value: '[secret]' }];
  const source_config = { resource_spec: { sidecars: [{ env }] } };
  expect(runs[0]).toMatchObject({
    inputs: { name: 'agent', source_config },
    outputs: { id: made.id, source_config },
  });
  expect(runs[1]?.inputs).toEqual({ deployment_id: made.id });
  expect(runs[2]?.inputs).toEqual({ limit: 1, offset: 0 });
  expect(runs[3]?.outputs ?? {}).toEqual({});
  expect(JSON.stringify(runs)).not.toMatch(/hunter|X-Signature|key-of-the/);
  await client.deployments.list();
  expect(recorded.runs.length).toBe(runs.length + 1);
});

/** Calls that create something with each attempt that arrives. */
const creating: readonly [
  name: string,
  call: (client: ControlPlane, id: string, revision: string) => Promise<unknown>,
][] = [
  ['create', ({ deployments }) => deployments.create(makeDeployment())],
  ['createAndWait', ({ deployments }) => deployments.createAndWait(makeDeployment(), { intervalMs: 1 })],
  ['update', ({ deployments }, id) => deployments.update(id, { secrets: [] })],
  ['updateAndWait', ({ deployments }, id) => deployments.updateAndWait(id, { secrets: [] }, { intervalMs: 1 })],
  ['redeploy', ({ revisions }, id, revision) => revisions.redeploy(id, revision)],
  ['redeployAndWait', ({ deployments }, id, revision) => deployments.redeployAndWait(id, revision, { intervalMs: 1 })],
  [
    'listeners.create',
    ({ listeners }) => listeners.create({ compute_type: 'k8s', compute_id: 'east', compute_config: {} }),
  ],
];

it.each(creating)('%s is sent once if the request may have arrived', async (_, call) => {
  const { platform, client } = await setUp();
  const { id, latest_revision_id } = await client.deployments.create(makeDeployment());
  const faults = [
    [broken, 'RUNSPAN_NO_RESPONSE'],
    [text('', 503, { 'retry-after': '1' }), 'RUNSPAN_SERVER_ERROR'],
  ] as const;
  for (const [fault, code] of faults) {
    const before = count(platform, /^(POST|PATCH)/);
    platform.next(/^(POST|PATCH)/, fault);
    expect(await thrownBy(call(client, id, latest_revision_id as string))).toMatchObject({ code });
    expect(count(platform, /^(POST|PATCH)/)).toBe(before + 1);
  }
});
