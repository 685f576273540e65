import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ControlPlaneServer } from '../clients/control-plane-server.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Ended, runRunspan } from '../support/program.ts';

const KEY = 'key-of-the-control-plane';
const { path: folder, remove } = temporaryFolder();
let server: ControlPlaneServer;
let environment: Record<string, string> = {};

beforeAll(async () => {
  server = await ControlPlaneServer.start({ apiKey: KEY });
  environment = { RUNSPAN_CONTROL_PLANE_URL: server.url, RUNSPAN_CONTROL_PLANE_KEY: KEY };
});
beforeEach(() => {
  server.statuses = ['DEPLOYED'];
});
afterAll(async () => {
  await server.close();
  remove();
});

const deployments = (words: string, more: Record<string, string> = {}): Promise<Ended> =>
  runRunspan(['deployments', ...words.split(' ')], { ...environment, ...more });

/** The id of a deployment that was made by the command. */
async function made(words: string): Promise<string> {
  const { stdout } = await deployments(`create ${words} --json`, { TOKEN: 'value-of-the-token' });
  return JSON.parse(stdout).id;
}

const IMAGE = '--name chat --source external_container --image registry.example.com/chat:1';
const SOURCE = '--name chat --source internal_source --config graph.json';

describe('runspan deployments', () => {
  it('creates, waits with its status on standard error, and prints the revision', async () => {
    server.statuses = ['DEPLOYING', 'DEPLOYED'];
    const ended = await deployments(`create ${IMAGE} --secret TOKEN --wait`, { TOKEN: 'value-of-the-token' });
    expect(ended.stderr).toMatch(/^created [0-9a-f-]{36}\nDEPLOYING {2}\d+ s\nDEPLOYED {2}\d+ s\n$/);
    expect(ended.stdout).toMatch(
      /^[0-9a-f-]{36} {2}\w+ {2}external_container {2}chat\n {2}revision {2}[0-9a-f-]{36} {2}DEPLOYED\n/,
    );
    expect(ended.code).toBe(0);
    const { body } = server.calls.findLast(({ method }) => method === 'POST') ?? {};
    expect(body).toMatchObject({ name: 'chat', secrets: [{ name: 'TOKEN', value: 'value-of-the-token' }] });
  });

  it('prints names of secrets, and never what they hold', async () => {
    const id = await made(`${IMAGE} --secret TOKEN`);
    const { stdout } = await deployments(`get ${id} --json`);
    expect(JSON.parse(stdout).secrets).toEqual([{ name: 'TOKEN' }]);
  });

  it('prints names of environment variables of containers, and never what they hold', async () => {
    const file = join(folder, 'sidecar.json');
    const env = [{ name: 'DATABASE_URL', value: 'value-of-the-variable' }];
    const resource_spec = { sidecars: [{ name: 'proxy', image: 'proxy:1', env }] };
    writeFileSync(file, JSON.stringify({ source_config: { resource_spec } }));
    const { stdout } = await deployments(`create ${IMAGE} --file ${file} --json`);
    expect(JSON.parse(stdout).source_config.resource_spec.sidecars[0].env).toEqual([{ name: 'DATABASE_URL' }]);
  });

  it('takes a deployment from a file, with options over it', async () => {
    const file = join(folder, 'deployment.json');
    const source_revision_config = { image_uri: 'registry.example.com/chat:1' };
    writeFileSync(
      file,
      JSON.stringify({ name: 'a', source: 'external_container', source_config: {}, source_revision_config }),
    );
    const { stdout } = await deployments(`create --file ${file} --name other --json`);
    expect(JSON.parse(stdout)).toMatchObject({ name: 'other', source_revision_config });
  });

  it('lists, updates, deploys again, waits, and deletes when it is told twice', async () => {
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
    expect([asked.code, asked.stderr]).toEqual([1, 'runspan: would delete the deployment chat; say so with --yes\n']);
    expect((await deployments(`delete ${id} --yes`)).stdout).toBe('deleted\n');
    const gone = await deployments(`get ${id}`);
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining(`404 Deployment ID ${id} not found.`)]);
  });

  it('lists the integrations and listeners that a deployment can refer to', async () => {
    const [integration] = server.integrations;
    expect((await deployments('integrations')).stdout).toBe(`${integration?.id}  acme\n`);
    expect(JSON.parse((await deployments('integrations --json')).stdout)).toEqual(integration);
    expect((await deployments('listeners')).stdout).toBe('no listeners\n');
    const listener = {
      id: 'l1',
      compute_type: 'k8s',
      compute_id: 'west',
      compute_config: { k8s_namespaces: ['a', 'b'] },
    };
    server.listeners.set('l1', listener);
    expect((await deployments('listeners')).stdout).toBe('l1  k8s  west  a,b\n');
    expect(JSON.parse((await deployments('listeners --limit 1 --json')).stdout)).toEqual(listener);
  });

  it('uploads a folder, and makes a revision of it', async () => {
    const id = await made(SOURCE);
    const app = join(folder, 'app');
    mkdirSync(app);
    writeFileSync(join(app, 'graph.json'), '{}');
    const { code, stdout } = await deployments(`upload ${id} ${app} --deploy --config graph.json --wait --json`);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).revision.status).toBe('DEPLOYED');
  });

  it('ends with 3 when the revision will not be deployed, and with 4 when the time is over', async () => {
    server.statuses = ['BUILD_FAILED'];
    const failed = await deployments(`create ${IMAGE} --wait`);
    expect([failed.code, failed.stderr]).toEqual([3, expect.stringMatching(/BUILD_FAILED/)]);
    server.next(/GET .*revisions/, (_, response) => {
      response.end(JSON.stringify({ id: 'r', status: 'BUILD_FAILED', status_message: 'no graph.json' }));
    });
    const told = await deployments(`create ${IMAGE} --wait`);
    expect([told.code, told.stderr]).toEqual([3, expect.stringMatching(/it is BUILD_FAILED: no graph\.json\n$/)]);
    server.statuses = ['BUILDING'];
    const late = await deployments(`create ${IMAGE} --wait --timeout 1s`);
    expect([late.code, late.stderr]).toEqual([4, expect.stringMatching(/BUILDING/)]);
  });

  it('names what is missing or wrong before anything is sent', async () => {
    const before = server.calls.length;
    const [nowhere, spelling, nothing, secret, rule, file] = await Promise.all([
      runRunspan(['deployments', 'list']),
      deployments('list', { RUNSPAN_CONTROL_PLANE_SPELLING: 'git_host' }),
      deployments('update 0193b3a0-2222-7000-8000-000000000001'),
      deployments(`create ${IMAGE} --secret NOT_SET_ANYWHERE`),
      deployments('create --name chat --source git_host --repo https://host/a --ref main'),
      deployments(`create --file ${join(folder, 'none.json')}`),
    ]);
    expect([nowhere.code, nowhere.stderr]).toEqual([
      1,
      'runspan: no control plane: set RUNSPAN_CONTROL_PLANE_URL, or give --url\n',
    ]);
    const likeThis = 'to be like git_host=…,graph_config_path=…\n';
    expect([spelling.code, spelling.stderr]).toEqual([
      1,
      `runspan: expected RUNSPAN_CONTROL_PLANE_SPELLING ${likeThis}`,
    ]);
    expect([nothing.code, nothing.stderr]).toEqual([2, 'runspan: expected something to change: --file, or a field\n']);
    expect([secret.code, secret.stderr]).toEqual([
      1,
      'runspan: --secret NOT_SET_ANYWHERE: there is no such variable here\n',
    ]);
    expect([rule.code, rule.stderr]).toEqual([1, expect.stringContaining('source_revision_config.graph_config_path')]);
    expect([file.code, file.stderr]).toEqual([1, expect.stringMatching(/^runspan: --file: ENOENT/)]);
    expect(server.calls.length).toBe(before);
  });

  it('says what the service does, and not the key', async () => {
    const { code, stderr } = await deployments('list', { RUNSPAN_CONTROL_PLANE_KEY: 'another-key' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^runspan: \[GET\] "http:.*": 40[13]/);
    expect(stderr).not.toContain('another-key');
  });
});
