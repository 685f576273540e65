import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  AgentServer,
  ControlPlane,
  createsRevision,
  type DeploymentPatch,
  InvalidRequestError,
  submitFeedback,
  type ValidationError,
} from '#src/clients.ts';
import { createPlatform, type Platform } from '#src/testing.ts';
import { CREATE, DEPLOYMENT_RULES, DEPLOYMENTS, ONLY_FOR } from '../../examples/demo/deployment-rules.ts';
import { RULES } from '../../examples/demo/interface.ts';
import type { Rule } from '../../examples/demo/rule.ts';
import { read } from '../package/repository.ts';
import { forAllAsync } from '../support/campaign.ts';

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
  const { length } = platform.requests;
  const errors = await sent(send(client, JSON.parse(json) as never));
  if (errors.length > 0) {
    expect(platform.requests).toHaveLength(length);
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

const SPEC = 'source_config.resource_spec';
const WHOLE = 'Expected a whole number, at least 0';
const deployment = (source: string): Json => structuredClone(DEPLOYMENTS[source] as Json);

/** Sets a field, unless an earlier value is in its way. */
function set(body: Json, path: string, value: unknown): void {
  const steps = path.split('.');
  const inner = steps.slice(0, -1).reduce<unknown>((outer, step) => Object(outer)[step], body);
  if (inner === Object(inner)) (inner as Json)[steps.at(-1) ?? ''] = value;
}

/** The path of the field that a refusal names: `secrets.0.name`. */
const pathOf = (refusal: string): string => refusal.split(':')[0] ?? '';
/** The rules that a client checks, each with a title. */
const titled = (rules: readonly Rule[]) =>
  rules.flatMap((rule) =>
    rule[5]?.valid === undefined ? [] : [[`${rule[1]}: ${rule[0]}`, rule, rule[5].valid] as const],
  );

describe('a rule of the interface that the demo counts is checked before a request is sent', () => {
  it.each(titled(DEPLOYMENT_RULES))('%s', async (_, [, request, body, refusal], valid) => {
    const send = request === CREATE ? created : patched;
    expect(await send(body)).toEqual([refusal]);
    for (const one of valid) expect(await send(one), JSON.stringify(one)).toEqual([]);
    // The resources in an update have the same rules.
    const { source_config } = body as Json;
    if (refusal.startsWith(`${SPEC}.`)) expect(await patched({ source_config })).toEqual([refusal]);
  });

  const agent = new AgentServer({ url: `${cloud.url}/agents/${NOWHERE}`, apiKey: cloud.apiKey });
  afterAll(() => agent.close());
  const calls = new Map<string, (body: never) => PromiseLike<unknown>>([
    ['search', (body) => agent.assistants.search(body)],
    ['stream', (body) => agent.runs.stream(NOWHERE, body)],
    ['{token_id}', (body) => submitFeedback(`${cloud.url}/api/v1/feedback/tokens/mine`, body)],
  ]);

  it.each(titled([...RULES['agent server'], ...RULES.feedback]))('%s', async (_, [, request, body, field], valid) => {
    const call = calls.get(request.split('/').at(-1) ?? '') as (body: unknown) => PromiseLike<unknown>;
    const { length } = cloud.requests;
    await expect(call(body)).rejects.toMatchObject({ errors: [{ loc: ['body', field] }] });
    expect(cloud.requests).toHaveLength(length);
    for (const one of valid) await expect(call(one)).rejects.toThrow('404');
  });

  it('for each field of a deployment that the reference declares', () => {
    const reference = read('docs/reference/clients.md');
    const fieldsOf = (type: string): string[] => {
      const [section = ''] = reference.split(`\n### ${type}\n`)[1]?.split('\n### ') ?? [];
      const fields = [...section.matchAll(/^- \*\*(\w+)\??\*\* (?:\[`(\w+)`\])?/gm)];
      return fields.flatMap(([, name = '', inner = '']) => [
        name,
        ...fieldsOf(inner).map((field) => `${name}.${field}`),
      ]);
    };
    const paths = titled(DEPLOYMENT_RULES).map(([, [, , , refusal]]) => pathOf(refusal).replace(/\.\d+/g, ''));
    const declared = [...fieldsOf('DeploymentCreate'), ...fieldsOf('DeploymentPatch')];
    expect(declared).toContain(`${SPEC}.sidecars.volumeMounts.mountPath`);
    expect(declared.filter((path) => !paths.includes(path))).toEqual([]);
  });
});

describe('a deployment to create', () => {
  it.each<[fields: object, refusals: string[]]>([
    [{ cpu: 4, cpu_limit: 3.96 }, []],
    [{ cpu: 1.26, cpu_limit: 1.24 }, ['cpu_limit: Expected at least 1.26, the value of cpu']],
    [{ max_scale: 0, min_scale: 0, queue_cpu: 1, cpu_limit: 0.5 }, []],
    [{ min_scale: 5, max_scale: 2, queue_max_scale: 6 }, ['max_scale: Expected at least 5, the value of min_scale']],
    [{ cpu: Number.NaN, memory_mb: Number.POSITIVE_INFINITY }, [`cpu: Expected a number`, `memory_mb: ${WHOLE}`]],
    [{ sidecars: [{ name: 'a', image: 'b', env: [{ name: 'A', value: '', valueFrom: {} }] }] }, []],
    [{ toString: 'x' }, ['toString: Unknown field, or a field that this request cannot set']],
  ])('with the resources %o has the refusals %j', async (resource_spec, refusals) => {
    const body = { ...deployment('external_container'), source_config: { resource_spec } };
    expect(await created(body)).toEqual(refusals.map((refusal) => `${SPEC}.${refusal}`));
  });

  it('reports every invalid field at once, also of rules about several fields', async () => {
    const body = {
      source_config: { build_on_push: true, repoUrl: 'x', resource_spec: { cpu: 9 } },
      source_revision_config: { repo_ref: 'refs/tags/v1' },
    };
    expect(await created({ ...deployment('git_host'), ...body })).toEqual([
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
    const sourcesOf = (field: string): string =>
      ONLY_FOR.flatMap(([one, , ...names]) => (one === field ? names : [])).join(' and ');
    const [sources, others] = [sourcesOf(path), sourcesOf(other)];
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
  const at = (body: unknown, path: string): unknown =>
    path.split('.').reduce((inner, step) => (inner as Json | undefined)?.[step], body);
  const source = fc.constantFrom(...Object.keys(DEPLOYMENTS));
  const field = fc.constantFrom(
    ...DEPLOYMENT_RULES.flatMap(([, , body, refusal, , more]) =>
      [body, ...(more?.valid ?? [])].map((one) => [pathOf(refusal), at(one, pathOf(refusal))] as const),
    ),
  );
  await forAllAsync(1_000, [source, fc.array(field, { maxLength: 3 }), fc.boolean()], async (from, fields, isNew) => {
    const body = deployment(from);
    for (const [path, value] of fields) set(body, path, structuredClone(value));
    const { name, source: _, ...patch } = body;
    await (isNew ? created(body) : patched(patch));
  });
});

it.each([undefined, null, 'text', []])('createsRevision expects an object, not %j', (value) => {
  expect(() => createsRevision(value as object)).toThrow('createsRevision: patch: Expected an object');
});
