import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ControlPlane } from '#src/clients.ts';
import { createPlatform, type Platform } from '#src/testing.ts';
import { type CommandResult, runMain } from '../support/command.ts';
import { testFolder } from '../support/test-folder.ts';

const KEY = 'key-of-the-control-plane';
const keys = { [KEY]: ['workspace-1'] };
let platform: Platform;
let environment: Record<string, string> = {};

beforeAll(async () => {
  platform = await createPlatform({ keys, statusMs: 0 });
  environment = { RUNSPAN_CONTROL_PLANE_URL: platform.url, RUNSPAN_CONTROL_PLANE_KEY: KEY };
});
beforeEach(() => platform.setStatuses(['DEPLOYED']));
afterAll(() => platform.close());

const deployments = (words: string, more: Record<string, string> = {}): Promise<CommandResult> =>
  runMain(['deployments', ...words.split(' ')], { ...environment, ...more });

async function made(words: string): Promise<string> {
  const { stdout } = await deployments(`create ${words} --json`, { TOKEN: 'value-of-the-token' });
  return JSON.parse(stdout).id;
}

const IMAGE = '--name chat --source internal_container --image registry.example.com/chat:1';
const SOURCE = '--name chat --source internal_source --config graph.json';

describe('runspan deployments', () => {
  it('creates a deployment, prints its status while it waits, and prints the revision', async () => {
    platform.setStatuses(['DEPLOYING', 'DEPLOYED']);
    const ended = await deployments(`create ${IMAGE} --secret TOKEN --wait`, { TOKEN: 'value-of-the-token' });
    expect(ended.stderr).toMatch(/^created [0-9a-f-]{36}\nDEPLOYING {2}\d+ s\nDEPLOYED {2}\d+ s\n$/);
    expect(ended.stdout).toMatch(
      /^[0-9a-f-]{36} {2}\w+ {2}internal_container {2}chat\n {2}revision {2}[0-9a-f-]{36} {2}DEPLOYED\n/,
    );
    expect(ended.code).toBe(0);
    const { body } = platform.requests.findLast(({ method }) => method === 'POST') ?? {};
    expect(body).toMatchObject({ name: 'chat', secrets: [{ name: 'TOKEN', value: 'value-of-the-token' }] });
  });

  it('reads a deployment from a file, in which options take precedence, and prints names without secret values', async () => {
    const env = [{ name: 'DATABASE_URL', value: 'value-of-the-variable' }];
    const source_config = { resource_spec: { sidecars: [{ name: 'proxy', image: 'proxy:1', env }] } };
    const source_revision_config = { image_uri: 'registry.example.com/chat:1' };
    const given = { name: 'a', source: 'external_container', source_config, source_revision_config };
    const file = join(testFolder({ 'deployment.json': JSON.stringify(given) }), 'deployment.json');
    await using own = await createPlatform({ keys, hosting: 'self-hosted' });
    const variables = { RUNSPAN_CONTROL_PLANE_URL: own.url, TOKEN: 'value-of-the-token' };
    const created = await deployments(`create --file ${file} --name other --secret TOKEN --json`, variables);
    const { id } = JSON.parse(created.stdout);
    for (const { stdout } of [created, await deployments(`get ${id} --json`, variables)]) {
      expect(JSON.parse(stdout)).toMatchObject({ name: 'other', source_revision_config });
      expect(JSON.parse(stdout).secrets).toEqual([{ name: 'TOKEN' }]);
      expect(JSON.parse(stdout).source_config.resource_spec.sidecars[0].env).toEqual([{ name: 'DATABASE_URL' }]);
    }
  });

  it('lists, updates, redeploys, waits, and deletes with --yes', async () => {
    const id = await made(IMAGE);
    expect((await deployments('list --limit 100')).stdout).toContain(id);
    const updated = await deployments(`update ${id} --image registry.example.com/chat:2 --wait --json`);
    expect(JSON.parse(updated.stdout)).toMatchObject({
      deployment: { source_revision_config: { image_uri: 'registry.example.com/chat:2' } },
      revision: { status: 'DEPLOYED' },
    });
    expect((await deployments(`redeploy ${id} --wait`)).stdout).toContain('  DEPLOYED\n');
    expect((await deployments(`wait ${id}`)).code).toBe(0);
    const asked = await deployments(`delete ${id}`);
    expect([asked.code, asked.stderr]).toEqual([1, 'runspan: would delete deployment chat; pass --yes to confirm\n']);
    expect((await deployments(`delete ${id} --yes`)).stdout).toBe('deleted\n');
    const gone = await deployments(`get ${id}`);
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining(`404 Deployment ID ${id} not found.`)]);
  });

  it('lists integrations and listeners', async () => {
    const integration = JSON.parse((await deployments('integrations --json')).stdout);
    expect((await deployments('integrations')).stdout).toBe(`${integration.id}  acme\n`);
    expect((await deployments('listeners')).stdout).toBe('no listeners\n');
    await using client = new ControlPlane({ baseUrl: platform.url, apiKey: KEY });
    const compute_config = { k8s_namespaces: ['a', 'b'] };
    const listener = await client.listeners.create({ compute_type: 'k8s', compute_id: 'west', compute_config });
    expect((await deployments('listeners')).stdout).toBe(`${listener.id}  k8s  west  a,b\n`);
    expect(JSON.parse((await deployments('listeners --limit 1 --json')).stdout)).toEqual(listener);
  });

  it('uploads a folder, and creates a revision', async () => {
    const id = await made(SOURCE);
    const app = testFolder({ 'graph.json': '{}' });
    const { code, stdout } = await deployments(`upload ${id} ${app} --deploy --config graph.json --wait --json`);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).revision.status).toBe('DEPLOYED');
  });

  it('exits with 3 if the revision will not be deployed, and with 4 after the timeout', async () => {
    platform.setStatuses(['BUILD_FAILED']);
    const failed = await deployments(`create ${IMAGE} --wait`);
    expect([failed.code, failed.stderr]).toEqual([3, expect.stringMatching(/BUILD_FAILED/)]);
    const revision = { id: 'r', status: 'BUILD_FAILED', status_message: 'no graph.json' };
    platform.next(/GET .*revisions/, () => ({ status: 200, body: revision }));
    const told = await deployments(`create ${IMAGE} --wait`);
    expect([told.code, told.stderr]).toEqual([
      3,
      expect.stringMatching(/its status is BUILD_FAILED: no graph\.json\n$/),
    ]);
    platform.setStatuses(['BUILDING']);
    const late = await deployments(`create ${IMAGE} --wait --timeout 1s`);
    expect([late.code, late.stderr]).toEqual([4, expect.stringMatching(/BUILDING/)]);
  });

  it.each<[string, Record<string, string>, number, string]>([
    ['list', { RUNSPAN_CONTROL_PLANE_URL: '' }, 2, 'no control plane: set RUNSPAN_CONTROL_PLANE_URL or --url\n'],
    ['list --spelling git_host', {}, 2, 'expected --spelling to be a pair such as git_host=…\n'],
    [`create ${IMAGE} --secret NOT_SET`, {}, 2, '--secret NOT_SET: this environment variable is not set\n'],
    ['create --name chat --source git_host --repo https://host/a --ref main', {}, 2, 'graph_config_path'],
    ['create --file /no/such/file.json', {}, 1, '--file: ENOENT'],
  ])('reports before it sends a request what is wrong with %s and %j', async (words, env, code, message) => {
    const before = platform.requests.length;
    const result = await deployments(words, env);
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)]);
    expect(platform.requests.length).toBe(before);
  });

  it('reports an error of the service without the key', async () => {
    const { code, stderr } = await deployments('list', { RUNSPAN_CONTROL_PLANE_KEY: 'another-key' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^runspan: \[GET\] "http:.*": 40[13]/);
    expect(stderr).not.toContain('another-key');
  });
});
