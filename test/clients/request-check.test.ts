import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { controlPlaneFields, type ResourceName } from '../../src/clients/control-plane-fields.ts';
import { checkRequest } from '../../src/clients/request-check.ts';
import { InvalidRequestError, type ValidationError } from '../../src/clients/validation-error.ts';
import { ControlPlaneServer } from './control-plane-server.ts';
import { badValue, bodyFor, fullBody, goodValue, leastOf, places, UUID, withValue } from './request-bodies.ts';

type Json = Record<string, unknown>;

let server: ControlPlaneServer;
beforeAll(async () => {
  server = await ControlPlaneServer.start();
});
afterAll(() => server.close());

/** What the check says of a body, and how the server answers it. */
async function judge(body: unknown, patched?: string): Promise<{ errors: readonly ValidationError[]; status: number }> {
  const mode = patched === undefined ? 'create' : 'patch';
  let errors: readonly ValidationError[] = [];
  try {
    checkRequest('deployments', { body, resource: 'Deployment', mode });
  } catch (thrown) {
    errors = (thrown as InvalidRequestError).errors;
  }
  const path = patched === undefined ? '/v2/deployments' : `/v2/deployments/${patched}`;
  const method = patched === undefined ? 'POST' : 'PATCH';
  const headers = { 'content-type': 'application/json' };
  const { status } = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
  return { errors, status };
}

async function accepts(body: unknown, patched?: string): Promise<void> {
  expect(await judge(body, patched)).toEqual({ errors: [], status: patched === undefined ? 201 : 200 });
}

/** The check finds one mistake, there; the server refuses it too. */
async function refuses(
  body: unknown,
  loc: readonly (string | number)[],
  type: string,
  patched?: string,
): Promise<void> {
  const { errors, status } = await judge(body, patched);
  expect(errors.map((error) => [error.loc, error.type])).toEqual([[['body', ...loc], type]]);
  expect([400, 422]).toContain(status);
}

async function created(source: string): Promise<string> {
  const response = await fetch(`${server.url}/v2/deployments`, {
    method: 'POST',
    body: JSON.stringify(source === 'external_container' ? fullBody() : leastOf(source)),
  });
  return ((await response.json()) as { id: string }).id;
}

const fields = Object.entries(places).flatMap(([resource, place]) =>
  Object.entries(controlPlaneFields[resource as ResourceName]).map(([name, field]) => ({
    title: `${resource}.${name}`,
    name,
    field,
    path: [...place, name],
  })),
);
const settable = fields.filter(({ field }) => !field.readOnly && !field.patchOnly);
const sources = controlPlaneFields.Deployment.source?.values ?? [];

describe('a field of a request', () => {
  it.each(settable)('$title is taken as the table has it', async ({ name, field, path }) => {
    if (name !== 'source') await accepts(withValue(bodyFor(field), path, goodValue(name, field)));
  });

  it.each(settable)('$title is refused as something else', async ({ field, path }) => {
    const { errors, status } = await judge(withValue(bodyFor(field), path, badValue(field)));
    expect(errors.map(({ loc }) => loc)).toContainEqual(['body', ...path]);
    expect(status).toBe(422);
  });

  it.each(settable)('$title may be null only where the table says so', async ({ field, path, title }) => {
    const body = withValue(bodyFor(field), path, null);
    if (title === 'SourceConfig.resource_spec' || field.nullable !== true || field.requiredFor) {
      const { errors, status } = await judge(body);
      expect(errors.length > 0).toBe(field.nullable !== true || field.requiredFor !== undefined);
      expect(status === 201).toBe(errors.length === 0);
    } else if (title.startsWith('ResourceSpec.volumes')) {
      await refuses(body, ['source_config', 'resource_spec', 'volume_mounts', 0, 'name'], 'value_error');
    } else await accepts(body);
  });

  it.each(settable.filter(({ field }) => field.required))(
    '$title can be left out only with a default',
    async (given) => {
      const body = withValue(bodyFor(given.field), given.path, undefined);
      if (given.field.default !== undefined) return accepts(body);
      const { errors, status } = await judge(body);
      expect(errors).toContainEqual({ loc: ['body', ...given.path], msg: 'Field required', type: 'missing' });
      expect(status).toBe(422);
    },
  );

  it.each(fields.filter(({ field }) => field.readOnly))(
    '$title is refused, since the service sets it',
    async (given) => {
      const { name, field, path } = given;
      await refuses(withValue(bodyFor(field), path, goodValue(name, field)), path, 'value_error');
    },
  );

  it.each(settable.filter(({ field }) => field.min !== undefined))('$title keeps within its bounds', async (given) => {
    const { field, path } = given;
    const { min = 0, max } = field;
    const body = bodyFor(field);
    await accepts(withValue(body, path, min));
    await accepts(withValue(body, path, min + 0.04));
    await refuses(withValue(body, path, min - 0.01), path, 'greater_than_equal');
    if (max === undefined) return accepts(withValue(body, path, 1_000));
    await accepts(withValue(body, path, max));
    await refuses(withValue(body, path, max + 0.01), path, 'less_than_equal');
  });

  it.each(settable.filter(({ field }) => field.type === 'integer'))(
    '$title is no fraction',
    async ({ field, path }) => {
      await refuses(withValue(bodyFor(field), path, 1.5), path, 'int_type');
    },
  );

  it.each(settable.filter(({ field, name }) => field.values && name !== 'source'))(
    '$title takes each of its words, and no other',
    async ({ field, path }) => {
      for (const word of field.values ?? []) await accepts(withValue(bodyFor(field), path, word));
      await refuses(withValue(bodyFor(field), path, 'another'), path, 'enum');
    },
  );

  it.each(settable.filter(({ field }) => field.sources))('$title is for its sources alone', async (given) => {
    const { name, field, path } = given;
    for (const source of sources) {
      const body = withValue(leastOf(source), path, goodValue(name, field));
      if (field.sources?.some((one) => one === source)) await accepts(body);
      else await refuses(body, path, 'value_error');
    }
  });

  it.each(settable.filter(({ field }) => field.immutable))(
    '$title cannot be changed',
    async ({ name, field, path }) => {
      const source = field.sources?.[0] ?? 'external_container';
      let patch: Json = name === 'name' || name === 'source' ? {} : { source_config: { listener_config: {} } };
      patch = withValue(patch, path, goodValue(name, field));
      if (!path.includes('listener_config')) delete (patch.source_config as Json | undefined)?.listener_config;
      await refuses(patch, path, 'value_error', await created(source));
    },
  );

  it.each(['DNS label', 'C identifier'])('that is a %s is checked at the limits of it', async (form) => {
    const good = { 'DNS label': ['a', '1-a', 'a'.repeat(63)], 'C identifier': ['_', 'a1', 'A_1'] }[form] ?? [];
    const bad = { 'DNS label': ['', '-a', 'a-', 'A', 'a.b', 'a'.repeat(64)], 'C identifier': ['', '1a', 'a-b', 'a b'] }[
      form
    ];
    const [field] = settable.filter((one) => one.field.form === form && !one.title.startsWith('Volume'));
    if (field === undefined) throw new Error(form);
    for (const value of good) await accepts(withValue(fullBody(), field.path, value));
    for (const value of bad ?? [])
      await refuses(withValue(fullBody(), field.path, value), field.path, 'string_pattern_mismatch');
  });
});

describe('a request', () => {
  it('is told of all its mistakes at once, without the values that were given', async () => {
    const body: Json = { ...leastOf('git_host'), sorce: 1, secrets: [{ name: 'KEY', value: 7 }, { value: 'hunter2' }] };
    body.source_config = { repoUrl: 'https://git.example/a', custom_url: 'https://a.example' };
    body.source_revision_config = { repo_commit_sha: 'abc' };
    const found = await judge(body);
    expect(found.status).toBe(422);
    expect(found.errors).toEqual([
      {
        loc: ['body', 'source_config', 'repoUrl'],
        msg: 'Unknown field; did you mean repo_url?',
        type: 'extra_forbidden',
      },
      {
        loc: ['body', 'source_revision_config', 'repo_commit_sha'],
        msg: 'Read-only: the service sets it',
        type: 'value_error',
      },
      { loc: ['body', 'secrets', 0, 'value'], msg: 'Expected text', type: 'string_type' },
      { loc: ['body', 'secrets', 1, 'name'], msg: 'Field required', type: 'missing' },
      { loc: ['body', 'sorce'], msg: 'Unknown field; did you mean source?', type: 'extra_forbidden' },
      {
        loc: ['body', 'source_config', 'custom_url'],
        msg: 'Only for external_container, and the source is git_host',
        type: 'value_error',
      },
      {
        loc: ['body', 'source_revision_config', 'graph_config_path'],
        msg: 'Field required for git_host',
        type: 'missing',
      },
    ]);
    const error = new InvalidRequestError('deployments.create', found.errors);
    expect(error.message).toContain(
      'deployments.create: body.source_config.repoUrl: Unknown field; did you mean repo_url?',
    );
    expect(JSON.stringify(found.errors)).not.toContain('hunter2');
  });

  it.each([null, undefined, 'text', 7, []])('that is %j is refused as a whole', async (body) => {
    expect((await judge(body)).errors).toEqual([{ loc: ['body'], msg: 'Expected an object', type: 'dict_type' }]);
  });

  it('cannot have a tag built on push, on create and update', async () => {
    const git = leastOf('git_host');
    const config = (repo_ref: string, build_on_push: boolean): Json => ({
      source_config: { build_on_push },
      source_revision_config: { repo_ref, graph_config_path: 'graph.json' },
    });
    const at = ['source_config', 'build_on_push'];
    const id = await created('git_host');
    await refuses({ ...git, ...config('refs/tags/v1', true) }, at, 'value_error');
    await refuses(config('refs/tags/v1', true), at, 'value_error', id);
    await accepts({ ...git, ...config('refs/tags/v1', false) });
    await accepts({ ...git, ...config('refs/heads/tags', true) });
    await accepts(config('main', true), id);
  });

  it.each(sources)('of %s needs a path of the graph configuration, or must not have one', async (source) => {
    const at = ['source_revision_config', 'graph_config_path'];
    const isBuilt = source === 'git_host' || source === 'internal_source';
    const body = { ...leastOf(source), source_revision_config: {} };
    if (isBuilt) await refuses(body, at, 'missing');
    else await refuses(withValue(body, at, 'graph.json'), at, 'value_error');
    if (!isBuilt) await accepts(withValue(body, at, null));
  });

  it('that updates may not give what no source has together', async () => {
    const id = await created('git_host');
    const patch = { source_config: { custom_url: 'https://a.example' }, source_revision_config: { repo_ref: 'main' } };
    const { errors, status } = await judge(patch, id);
    expect(errors).toEqual([
      {
        loc: ['body', 'source_revision_config', 'repo_ref'],
        msg: 'Only for git_host, but source_config.custom_url is not',
        type: 'value_error',
      },
    ]);
    expect(status).toBe(400);
  });

  it('that updates gives a revision what its own source has', async () => {
    const id = await created('internal_container');
    const image = { source_revision_config: { image_uri: 'registry.example/agent:2' } };
    await accepts({ revision_source: 'internal_container', ...image }, id);
    await refuses(
      { revision_source: 'internal_source', ...image },
      ['source_revision_config', 'image_uri'],
      'value_error',
      id,
    );
    await refuses(
      { ...leastOf('internal_container'), revision_source: 'internal_container' },
      ['revision_source'],
      'value_error',
    );
  });

  it('that updates may leave everything as it is', async () => {
    await accepts({}, await created('git_host'));
    await accepts({ source_config: null, source_revision_config: null, secrets: null }, await created('git_host'));
  });

  const spec = ['source_config', 'resource_spec'];
  const variable = [...spec, 'sidecars', 0, 'env', 0];
  it.each<[what: string, path: readonly (string | number)[], value: unknown, at: readonly (string | number)[]]>([
    ['two volumes of one name', [...spec, 'volumes', 1], { name: 'data' }, [...spec, 'volumes', 1, 'name']],
    ['a mount of no volume', [...spec, 'volume_mounts', 0, 'name'], 'date', [...spec, 'volume_mounts', 0, 'name']],
    [
      "a container's mount of no volume",
      [...spec, 'sidecars', 0, 'volumeMounts', 0],
      { name: 'logs', mountPath: '/logs' },
      [...spec, 'sidecars', 0, 'volumeMounts', 0, 'name'],
    ],
    ['a value and where it is from', variable, { name: 'A', value: 'b', valueFrom: {} }, [...variable, 'valueFrom']],
  ])('has no %s', async (_, path, value, at) => {
    await refuses(withValue(fullBody(), path, value), at, 'value_error');
  });

  it('may have an empty value beside where it is from', async () => {
    await accepts(withValue(fullBody(), variable, { name: 'A', value: '', valueFrom: { fieldRef: {} } }));
    await accepts(withValue(fullBody(), variable, { name: 'A', value: null, valueFrom: { fieldRef: {} } }));
  });

  it('names ids of its path and query that are none', () => {
    const check = (): void =>
      checkRequest('deployments.get', {
        path: { deployment_id: '../x', revision_id: UUID },
        query: { ids: [UUID, ''] },
      });
    expect(check).toThrow(InvalidRequestError);
    expect(check).toThrow('path.deployment_id: Expected a UUID; query.ids[1]: Expected a UUID');
  });
});
