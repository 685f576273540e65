import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  ControlPlane,
  createsRevision,
  type DeploymentPatch,
  InvalidRequestError,
  type ValidationError,
} from '#src/clients.ts';
import { createPlatform, type Platform } from '#src/testing.ts';
import { cases } from '../support/campaign.ts';

const NOWHERE = '0193b3a0-1111-7000-8000-000000000001';
const cloud = await createPlatform();
const own = await createPlatform({ hosting: 'self-hosted' });
const clients = new Map([cloud, own].map((one) => [one, new ControlPlane({ baseUrl: one.url, apiKey: one.apiKey })]));
afterAll(() => Promise.all([...clients].flatMap(([platform, client]) => [client.close(), platform.close()])));

type Json = Record<string, unknown>;

/** What only the platform knows. The client sends such a request. */
const UNKNOWN = /not found|from upload-url|listeners of compute type/;

/** The invalid fields by the client. Empty if the request is sent. The platform accepts what the client sends. */
async function sent(call: Promise<unknown>): Promise<readonly ValidationError[]> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof InvalidRequestError) return thrown.errors;
  if (thrown !== undefined) expect((thrown as Error).message).toMatch(UNKNOWN);
  return [];
}

type Send = (client: ControlPlane, body: never) => Promise<unknown>;

const inText = (errors: readonly ValidationError[]): string[] =>
  errors.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`);

/** The invalid fields of a request: `source_config.cpu: Expected …`. Without the client, the platform reports the same. */
async function refusals(platform: Platform, send: Send, request: string, body: unknown): Promise<string[]> {
  const client = clients.get(platform) as ControlPlane;
  const json = JSON.stringify(body);
  const errors = await sent(send(client, JSON.parse(json) as never));
  if (errors.length > 0) {
    const [method = '', path] = request.split(' ');
    const headers = { 'x-api-key': platform.apiKey, 'content-type': 'application/json' };
    const response = await fetch(platform.url + path, { method, headers, body: json });
    const { detail } = (await response.json()) as { detail: unknown };
    const isOfSource = errors.every(({ msg }) => msg.startsWith('Only for'));
    expect([response.status, detail]).toEqual(isOfSource ? [400, inText(errors).join('; ')] : [422, errors]);
  }
  return inText(await sent(send(client, body as never)));
}

const created = (body: unknown): Promise<string[]> => {
  const isOwn = (body as Json | null)?.source === 'external_container';
  return refusals(isOwn ? own : cloud, ({ deployments }, one) => deployments.create(one), 'POST /v2/deployments', body);
};
const patched = (body: unknown): Promise<string[]> =>
  refusals(own, ({ deployments }, one) => deployments.update(NOWHERE, one), `PATCH /v2/deployments/${NOWHERE}`, body);

/** The smallest deployment of a source, with a value at a path such as `source_config.resource_spec.cpu`. */
function deployment(source: string, path = '', value: unknown = undefined): Json {
  const isBuilt = source === 'git_host' || source === 'internal_source';
  const config = source === 'external_container' ? { resource_spec: {}, listener_config: {} } : {};
  const revision = isBuilt ? { graph_config_path: 'graph.json' } : {};
  const body: Json = { name: 'agent', source, source_config: config, source_revision_config: revision };
  if (path !== '') set(body, path, value);
  return body;
}

/** Sets a field, unless an earlier value is in its way. */
function set(body: Json, path: string, value: unknown): void {
  const steps = path.split('.');
  const inner = steps.slice(0, -1).reduce<unknown>((outer, step) => Object(outer)[step], body);
  if (inner === Object(inner)) (inner as Json)[steps.at(-1) ?? ''] = value;
}

const SOURCES = ['git_host', 'external_container', 'internal_container', 'internal_source', 'internal_template'];
const SPEC = 'source_config.resource_spec';
const WHOLE = [
  [0, 2, null],
  [1.5, '1', true],
] as const;
const TEXT = [['text', '', null], [7]] as const;
const NO_CORES = [0.09, 0, -1, '1', Number.NaN, Number.POSITIVE_INFINITY];

type FieldRow = readonly [source: string, path: string, good: readonly unknown[], bad: readonly unknown[]];

const specs = (fields: string, good: readonly unknown[], bad: readonly unknown[]): FieldRow[] =>
  fields.split(' ').map((field) => ['external_container', `${SPEC}.${field}`, good, bad]);

/** Fields of a deployment by source: valid values and invalid values. */
const FIELDS: readonly FieldRow[] = [
  ['external_container', 'name', ['agent'], [undefined, 7, null]],
  ['external_container', 'source_config', [{}], [undefined, null, []]],
  ['external_container', 'source_revision_config', [{}], [undefined, 'x']],
  [
    'external_container',
    'secrets',
    [undefined, [], [{ name: 'A', value: 'b' }]],
    [{}, [{ name: 'A' }], [{ value: 'b' }], [{ name: 'A', value: 7 }]],
  ],
  [
    'external_container',
    'secret_references',
    [null, [{ name: 'A', secret_name: 'b', secret_key: 'c' }]],
    [[{ name: 'A', secret_name: 'b' }]],
  ],
  ['external_container', 'image_version', ...TEXT],
  [
    'external_container',
    'deployment_tier',
    ['SERVERLESS_S', 'SERVERLESS_M', 'SERVERLESS_L', 'DEDICATED_S', 'DEDICATED_M', 'DEDICATED_L', null],
    ['X', 'dedicated_s'],
  ],
  ...'id tenant_id created_at status latest_revision_id is_managed_deep_agent revision_source toString'
    .split(' ')
    .map((field) => ['external_container', field, [undefined], ['x']] as const),
  ['git_host', 'source_config.integration_id', [NOWHERE, null], ['x', 7]],
  ['git_host', 'source_config.repo_url', ...TEXT],
  ['git_host', 'source_config.deployment_type', ['dev_free', 'dev', 'prod', 'dev_zero', 'dev_free_zero'], ['test']],
  ['git_host', 'source_config.build_on_push', [true, false, null], ['true']],
  ['git_host', 'source_config.repoUrl', [undefined], ['x']],
  ['external_container', 'source_config.custom_url', ...TEXT],
  ['external_container', 'source_config.listener_id', [NOWHERE], ['x']],
  [
    'external_container',
    'source_config.listener_config',
    [{ k8s_namespace: 'a' }, {}, null],
    [{ namespace: 'a' }, 'x'],
  ],
  ['internal_template', 'source_config.install_command', ...TEXT],
  ['internal_template', 'source_config.build_command', ...TEXT],
  ['git_host', 'source_revision_config.repo_ref', ['main', 'refs/tags/v1', null], [7]],
  ['git_host', 'source_revision_config.graph_config_path', ['graph.json'], [null, undefined, 7]],
  ['internal_source', 'source_revision_config.graph_config_path', ['graph.json'], [null, undefined]],
  ['external_container', 'source_revision_config.image_uri', ...TEXT],
  ['internal_source', 'source_revision_config.source_tarball_path', ...TEXT],
  ['git_host', 'source_revision_config.repo_commit_sha', [null], ['abc']],
  ...specs('min_scale max_scale memory_mb memory_limit_mb queue_min_scale queue_max_scale', ...WHOLE),
  ...specs('queue_memory_mb queue_memory_limit_mb redis_memory_mb redis_memory_limit_mb core_memory_mb', ...WHOLE),
  ...specs('core_memory_limit_mb db_memory_mb db_memory_limit_mb db_storage_gi db_max_connections', ...WHOLE),
  ...specs('cpu queue_cpu redis_cpu', [0.1, 8, null], [...NO_CORES, 8.01]),
  ...specs('cpu_limit queue_cpu_limit redis_cpu_limit', [0.1, 16, null], [...NO_CORES, 16.01]),
  ...specs('core_cpu core_cpu_limit', [0.1, 1_000, null], NO_CORES),
  ...specs('db_cpu db_cpu_limit', [0, 100, null], ['1', Number.NaN]),
  ...specs('labels annotations', [{ a: 'b' }, {}, null], [{ a: 1 }, { a: null }, 'x', [], ['a']]),
  ['external_container', `${SPEC}.service_account_name`, ...TEXT],
];

/** Fields that only deployments of certain sources may have, each with a valid value. */
const ONLY_FOR: readonly (readonly [path: string, value: unknown, sources: string])[] = [
  ['secret_references', [], 'external_container'],
  ['source_config.integration_id', NOWHERE, 'git_host'],
  ['source_config.repo_url', 'x', 'git_host'],
  ['source_config.deployment_type', 'prod', 'git_host'],
  ['source_config.build_on_push', false, 'git_host'],
  ['source_config.custom_url', 'x', 'external_container'],
  ['source_config.resource_spec', {}, 'external_container'],
  ['source_config.listener_id', NOWHERE, 'external_container'],
  ['source_config.listener_config', {}, 'external_container'],
  ['source_revision_config.repo_ref', 'main', 'git_host'],
  ['source_revision_config.graph_config_path', 'x', 'git_host and internal_source'],
  ['source_revision_config.image_uri', 'x', 'external_container and internal_container'],
  ['source_revision_config.source_tarball_path', 'x', 'internal_source'],
];

describe('a deployment to create', () => {
  it.each(FIELDS)('of the source %s checks the field %s', async (source, path, good, bad) => {
    for (const value of good) expect(await created(deployment(source, path, value)), `${value}`).toEqual([]);
    for (const value of bad) {
      const [refused = 'nothing', ...others] = await created(deployment(source, path, value));
      expect(refused.startsWith(path), `${path} = ${JSON.stringify(value)}: ${refused}`).toBe(true);
      expect(others).toEqual([]);
    }
  });

  it.each(ONLY_FOR)('may have %s only for certain sources', async (path, value, sources) => {
    for (const source of SOURCES) {
      const expected = sources.includes(source) ? [] : [`${path}: Only for ${sources}`];
      expect(await created(deployment(source, path, value)), source).toEqual(expected);
    }
  });

  it('reports every invalid field at once, also of rules about several fields', async () => {
    const body = deployment('git_host', 'source_config', {
      build_on_push: true,
      repoUrl: 'x',
      resource_spec: { cpu: 9 },
    });
    body.source_revision_config = { repo_ref: 'refs/tags/v1' };
    expect(await created(body)).toEqual([
      'source_config.resource_spec.cpu: Expected at most 8',
      'source_config.repoUrl: Unknown field, or a field that this request cannot set',
      'source_config.resource_spec: Only for external_container',
      'source_revision_config.graph_config_path: Field required for git_host',
      'source_config.build_on_push: Cannot be true if repo_ref is a tag (refs/tags/…)',
    ]);
    for (const none of [null, 'x', []]) expect(await created(none)).toEqual([': Expected an object']);
  });

  it.each([
    ['refs/tags/v1', true, false],
    ['refs/tags/v1', false, true],
    ['refs/tags/v1', undefined, true],
    ['main', true, true],
  ])('from %s with build_on_push %s is sent: %s', async (repo_ref, build_on_push, isSent) => {
    const parts = { source_config: { build_on_push }, source_revision_config: { repo_ref, graph_config_path: 'g' } };
    expect((await created({ ...deployment('git_host'), ...parts })).length === 0).toBe(isSent);
    expect((await patched(parts)).length === 0).toBe(isSent);
  });
});

describe('an update of a deployment', () => {
  it.each<[DeploymentPatch, creates: boolean]>([
    [{ source_revision_config: { repo_ref: 'main' } }, true],
    [{ source_revision_config: { graph_config_path: 'graph.json' } }, true],
    [{ source_revision_config: { source_tarball_path: 'uploads/1', graph_config_path: 'graph.json' } }, true],
    [{ revision_source: 'internal_source', source_revision_config: { source_tarball_path: 'uploads/1' } }, true],
    [{ secrets: [] }, true],
    [{ source_config: { resource_spec: {} }, source_revision_config: { image_uri: 'agent:2', repo_ref: null } }, true],
    [{}, false],
    [{ source_config: null, source_revision_config: null, secrets: null }, false],
    [{ source_config: { build_on_push: true, repo_url: null, resource_spec: null } }, false],
    [{ source_config: { custom_url: 'https://a.example' }, secret_references: [] }, false],
    [{ revision_source: 'internal_source', source_config: { build_on_push: false } }, false],
    [{ revision_source: 'git_host', deployment_tier: 'DEDICATED_S', image_version: '1' }, false],
  ])('may be %j, and creates a revision: %s', async (patch, creates) => {
    expect(await patched(patch)).toEqual([]);
    expect(createsRevision(patch)).toBe(creates);
  });

  it.each([
    ['name', 'x', 'Unknown field, or a field that this request cannot set'],
    ['source', 'git_host', 'Unknown field, or a field that this request cannot set'],
    ['revision_source', 'external_container', 'Expected one of git_host, internal_container, internal_source'],
    ['source_config.integration_id', NOWHERE, 'Cannot be changed'],
    ['source_config.repo_url', 'x', 'Cannot be changed'],
    ['source_config.deployment_type', 'prod', 'Cannot be changed'],
    ['source_config.listener_id', NOWHERE, 'Cannot be changed'],
    ['source_config.listener_config.k8s_namespace', 'a', 'Cannot be changed'],
    ['source_config.resource_spec.cpu', 9, 'Expected at most 8'],
  ])('cannot set %s to %s: %s', async (path, value, message) => {
    const patch = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    expect(await patched(patch)).toEqual([`${path}: ${message}`]);
  });

  const revision = 'source_revision_config';
  it.each([
    [`${revision}.repo_ref`, 'source_config.resource_spec'],
    ['source_config.build_on_push', 'secret_references'],
    [`${revision}.graph_config_path`, 'source_config.custom_url'],
    [`${revision}.image_uri`, `${revision}.graph_config_path`],
    [`${revision}.source_tarball_path`, `${revision}.repo_ref`],
    [`${revision}.image_uri`, `${revision}.repo_ref`, 'git_host'],
  ])('cannot set fields of different sources: %s and %s', async (path, other, revision_source?: string) => {
    const patch = { revision_source, source_config: {}, [revision]: {} };
    for (const [field, value] of ONLY_FOR) if (field === path || field === other) set(patch, field, value);
    const [sources, others] = [path, other].map((field) => ONLY_FOR.find(([one]) => one === field)?.[2]);
    const message = `Only for ${sources}, but ${other} is only for ${others}; set only fields of one source`;
    expect(await patched(patch)).toEqual([`${path}: ${message}`]);
  });
});

it('a listener has no unknown field', async () => {
  const listener = { compute_type: 'docker', compute_id: 7, compute_config: { namespaces: [] }, id: NOWHERE };
  const unknown = 'compute_config.namespaces: Unknown field, or a field that this request cannot set';
  const patch = { compute_config: { namespaces: [] } };
  const update: Send = ({ listeners }, body) => listeners.update(NOWHERE, body);
  expect(await refusals(own, update, `PATCH /v2/listeners/${NOWHERE}`, patch)).toEqual([unknown]);
  const create: Send = ({ listeners }, body) => listeners.create(body);
  expect(await refusals(own, create, 'POST /v2/listeners', listener)).toEqual([
    'compute_type: Expected one of k8s',
    'compute_id: Expected a non-empty string',
    unknown,
    'id: Unknown field, or a field that this request cannot set',
  ]);
});

it('client and platform agree about generated requests', async () => {
  const source = fc.constantFrom(...SOURCES);
  const field = fc.constantFrom(
    ...FIELDS.flatMap(([, path, good, bad]) => [...good, ...bad].map((one) => [path, one])),
  );
  await fc.assert(
    fc.asyncProperty(source, fc.array(field, { maxLength: 3 }), fc.boolean(), async (from, fields, isNew) => {
      const body = deployment(from);
      for (const [path, value] of fields) set(body, String(path), structuredClone(value));
      const { name, source: _, ...patch } = body;
      await (isNew ? created(body) : patched(patch));
    }),
    { numRuns: cases(1_000) },
  );
});

it.each([undefined, null, 'text', []])('createsRevision expects an object, not %j', (value) => {
  expect(() => createsRevision(value as object)).toThrow('createsRevision: patch: Expected an object');
});
