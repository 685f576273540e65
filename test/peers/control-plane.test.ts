import { describe, expect, it, onTestFinished } from 'vitest';
import { ControlPlane } from '#src/clients/control-plane/control-plane.ts';
import { createPlatform } from '#src/testing.ts';

// The client of the platform's own command line. It is a part of that package, which exports nothing.
const HOST_BACKEND = './control-plane/node_modules/@langchain/langgraph-cli/dist/cli/utils/host-backend.mjs';

type Json = Record<string, unknown>;

/** What the test uses of it. */
interface HostBackendClient {
  createDeployment(args: {
    name: string;
    source: string;
    deploymentType?: string;
    configPath?: string;
    secrets?: Json[];
  }): Promise<Json>;
  listDeployments(nameContains?: string): Promise<{ resources: Json[] }>;
  getDeployment(id: string): Promise<Json>;
  deleteDeployment(id: string): Promise<undefined>;
  requestUploadUrl(id: string): Promise<{ upload_url: string; object_path: string }>;
  updateDeployment(id: string, imageUri: string, args?: { secrets?: Json[] }): Promise<Json>;
  updateDeploymentInternalSource(id: string, args: Json): Promise<Json>;
  listRevisions(id: string, limit?: number): Promise<{ resources: Json[] }>;
  getRevision(id: string, revisionId: string): Promise<Json>;
}

const { HostBackendClient: Peer } = (await import(HOST_BACKEND)) as {
  HostBackendClient: new (baseUrl: string, apiKey: string, tenantId?: string) => HostBackendClient;
};

const SPELLING = {
  git_host: 'github',
  external_container: 'external_docker',
  internal_container: 'internal_docker',
  graph_config_path: 'langgraph_config_path',
};
const TENANT = '0193b3a0-2222-7000-8000-000000000002';
const KEY = 'key-of-the-organisation';

/** A platform with its own names and a key of two workspaces, with its own client and ours. */
async function setUp() {
  const platform = await createPlatform({ spelling: SPELLING, statusMs: 0, keys: { [KEY]: [TENANT, 'workspace-2'] } });
  const ours = new ControlPlane({ baseUrl: platform.url, apiKey: KEY, tenantId: TENANT, spelling: SPELLING });
  onTestFinished(async () => {
    await ours.close();
    await platform.close();
  });
  return { platform, ours, theirs: new Peer(platform.url, KEY, TENANT) };
}

const secrets = [{ name: 'KEY', value: 'a value' }];

describe("the platform's own client", () => {
  it('deploys a source to the platform, as ours does', async () => {
    const { ours, theirs } = await setUp();
    const made = await theirs.createDeployment({
      name: 'agent',
      source: 'internal_source',
      configPath: 'a.json',
      secrets,
    });
    const id = String(made.id);
    expect(made).toMatchObject({
      source: 'internal_source',
      source_revision_config: { langgraph_config_path: 'a.json' },
    });
    const { upload_url, object_path } = await theirs.requestUploadUrl(id);
    const headers = { 'content-type': 'application/gzip', 'x-goog-content-length-range': '0,209715200' };
    const sent = await fetch(upload_url, { method: 'PUT', headers, body: Buffer.from('a tarball') });
    expect(sent.status).toBe(200);
    const changed = await theirs.updateDeploymentInternalSource(id, {
      sourceTarballPath: object_path,
      configPath: 'b.json',
      installCommand: 'npm ci',
    });
    const { resources } = await theirs.listRevisions(id);
    expect(resources.map((revision) => revision.id)).toEqual([changed.latest_revision_id]);
    const revision = await theirs.getRevision(id, String(changed.latest_revision_id));
    expect(revision).toMatchObject({ source_revision_config: { source_tarball_path: object_path } });
    const waited = await ours.deployments.waitUntilDeployed(id, { intervalMs: 1 });
    expect(waited.revision).toMatchObject({
      id: changed.latest_revision_id,
      source: 'internal_source',
      source_revision_config: { graph_config_path: 'b.json', source_tarball_path: object_path },
    });
    expect(await ours.deployments.get(id)).toMatchObject({ secrets, source_config: { install_command: 'npm ci' } });
  });

  it('deploys an image, whose words ours reads as those of the interface', async () => {
    const { ours, theirs } = await setUp();
    const { id } = await theirs.createDeployment({ name: 'agent', source: 'internal_docker' });
    await theirs.updateDeployment(String(id), 'registry.example/agent:2', { secrets });
    const deployment = await ours.deployments.get(String(id));
    expect(deployment).toMatchObject({
      source: 'internal_container',
      secrets,
      source_revision_config: { image_uri: 'registry.example/agent:2', graph_config_path: null },
    });
    const revision = await ours.revisions.get(String(id), deployment.latest_revision_id ?? '');
    expect(revision.source).toBe('internal_container');
  });

  it('sees, lists and deletes what ours has made', async () => {
    const { ours, theirs } = await setUp();
    const made = await ours.deployments.create({
      name: 'agent',
      source: 'git_host',
      source_config: { repo_url: 'https://git.example/acme/agent', deployment_type: 'prod' },
      source_revision_config: { repo_ref: 'main', graph_config_path: 'graph.json' },
    });
    expect(await theirs.getDeployment(made.id)).toMatchObject({
      source: 'github',
      source_revision_config: { langgraph_config_path: 'graph.json' },
    });
    expect((await theirs.listDeployments('age')).resources).toMatchObject([{ id: made.id }]);
    expect((await theirs.listDeployments('other')).resources).toEqual([]);
    await theirs.deleteDeployment(made.id);
    await expect(ours.deployments.get(made.id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  });

  it('reads the refusals of the platform', async () => {
    const { platform, theirs } = await setUp();
    const nowhere = '0193b3a0-ffff-7000-8000-00000000000f';
    await expect(theirs.getDeployment(nowhere)).rejects.toMatchObject({
      statusCode: 404,
      message: expect.stringContaining(`Deployment ID ${nowhere} not found.`),
    });
    await expect(new Peer(platform.url, KEY).getDeployment(nowhere)).rejects.toMatchObject({
      statusCode: 403,
      message: expect.stringContaining('requires workspace specification'),
    });
    await expect(theirs.createDeployment({ name: 'agent', source: 'git_host' })).rejects.toMatchObject({
      statusCode: 422,
    });
    // By the interface a type is for the git host alone; the platform's client gives it for every source.
    const typed = theirs.createDeployment({ name: 'agent', source: 'internal_docker', deploymentType: 'dev' });
    await expect(typed).rejects.toMatchObject({ statusCode: 400 });
  });
});
