import { ControlPlane, createsRevision, type DeploymentCreate, type DeploymentPatch } from 'runspan/clients';
import type { DemoContext } from './context.ts';
import { DEPLOYMENTS } from './deployment-rules.ts';

/** Patches, each with whether it makes a revision. */
const PATCHES: readonly (readonly [patch: DeploymentPatch, makesRevision: boolean])[] = [
  [{ source_revision_config: { repo_ref: 'next' } }, true],
  [{ source_revision_config: { graph_config_path: 'agent/graph.json' } }, true],
  [{ secrets: [{ name: 'KEY', value: 'other' }] }, true],
  [{ source_config: { install_command: 'npm ci' } }, false],
  [{ source_config: { build_on_push: true } }, false],
];

const WAIT = { intervalMs: 5 };

const requestFor = (source: string): DeploymentCreate => DEPLOYMENTS[source] as unknown as DeploymentCreate;

export async function controlPlane({ platform, selfHosted, ids, check }: DemoContext): Promise<void> {
  const cloud = new ControlPlane({ baseUrl: platform.url, apiKey: platform.apiKey });
  const own = new ControlPlane({ baseUrl: selfHosted.url, apiKey: selfHosted.apiKey });
  const [integration] = await cloud.integrations.list();
  const source_config = { integration_id: integration?.id ?? '', repo_url: 'https://git.example/shop' };
  const { deployment, revision } = await cloud.deployments.createAndWait(
    { ...requestFor('git_host'), source_config },
    WAIT,
  );
  check('the first revision is the active one', deployment.active_revision_id, revision.id);
  check('a deployment keeps its fields', deployment.source_config.repo_url, source_config.repo_url);
  Object.assign(ids, { deployment_id: deployment.id, revision_id: revision.id });

  let latest = revision.id;
  for (const [patch, makesRevision] of PATCHES) {
    const { latest_revision_id: id } = await cloud.deployments.update(deployment.id, patch);
    check(`whether ${JSON.stringify(patch)} makes a revision`, id !== latest, makesRevision);
    check(`whether createsRevision says so of ${JSON.stringify(patch)}`, createsRevision(patch), makesRevision);
    latest = id ?? '';
  }
  const again = await cloud.deployments.redeployAndWait(deployment.id, revision.id, WAIT);
  check('a redeployment has the configuration of its revision', again.revision.source_revision_config.repo_ref, null);

  for (const source of ['internal_source', 'internal_container', 'internal_template'])
    await cloud.deployments.create(requestFor(source));
  const uploaded = await cloud.deployments.create(requestFor('internal_source'));
  ids.uploaded_id = uploaded.id;
  const { object_path } = await cloud.deployments.uploadUrl(uploaded.id);
  const tarball = { source_revision_config: { source_tarball_path: object_path } };
  const patched = await cloud.deployments.update(uploaded.id, tarball);
  check('an issued path is accepted', patched.source_revision_config.source_tarball_path, object_path);

  const listener = await own.listeners.create({
    compute_type: 'k8s',
    compute_id: 'cluster',
    compute_config: { k8s_namespaces: ['shop'] },
  });
  const { items } = await own.listeners.list();
  check('the listener is listed', items[0]?.id, listener.id);
  await resources(own, check);
  await Promise.all([cloud.close(), own.close()]);
}

/** Results of the rules for resources: CPU has one decimal, and limits have defaults. */
async function resources(own: ControlPlane, check: DemoContext['check']): Promise<void> {
  const given = { min_scale: 1, max_scale: 3, cpu: 1.26, memory_mb: 512, redis_memory_mb: 64, core_cpu: 0.5 };
  const created = await own.deployments.create({
    ...requestFor('external_container'),
    source_config: { resource_spec: given },
  });
  const spec = created.source_config.resource_spec;
  check('CPU is rounded to one decimal', spec?.cpu, 1.3);
  check('a CPU limit is twice the CPU', [spec?.cpu_limit, spec?.core_cpu_limit], [2.6, 1]);
  check('a memory limit is twice the memory', spec?.memory_limit_mb, 1_024);
  check('a cache is limited to its memory', spec?.redis_memory_limit_mb, 64);
  check(
    'a queue has the size of the server',
    [spec?.queue_cpu, spec?.queue_min_scale, spec?.queue_max_scale],
    [1.3, 1, 3],
  );
  const patch = { source_config: { resource_spec: { cpu: 2 } } };
  const changed = await own.deployments.update(created.id, patch);
  check('resources make a revision', changed.latest_revision_id !== created.latest_revision_id);
  check('resources are replaced', changed.source_config.resource_spec?.memory_mb ?? null, null);
}
