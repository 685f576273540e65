import { env, variable } from '../base/env.ts';
import { visible, visibleJson } from '../base/text.ts';
import { ControlPlane } from '../clients/control-plane.ts';
import type { Deployment, DeploymentCreate, DeploymentPatch } from '../clients/deployment.ts';
import type { Listener } from '../clients/listener.ts';
import type { Revision } from '../clients/revision.ts';
import type { UploadedSource } from '../clients/source-upload.ts';
import type { Spelling } from '../clients/spelling.ts';
import {
  type DeploymentFields,
  type DeploymentsAction,
  type DeploymentsInvocation,
  pairOf,
} from './deployments-arguments.ts';
import { readGivenObject, WordsMistake } from './given-json.ts';
import type { WaitProgress } from './wait-progress.ts';

/** Where a command's words go. */
export interface DeploymentsOutput {
  /** Standard output. */
  readonly write: (text: string) => void;
  /** What happens meanwhile. */
  readonly progress: WaitProgress;
}

/** Does what the words ask for with deployments. Rejects with what went wrong. */
export async function deployments(invocation: DeploymentsInvocation, output: DeploymentsOutput): Promise<void> {
  const controlPlane = openControlPlane(invocation);
  try {
    await ACTIONS[invocation.action](controlPlane, invocation, output);
  } finally {
    output.progress.end();
    await controlPlane.close();
  }
}

type Action = (
  controlPlane: ControlPlane,
  invocation: DeploymentsInvocation,
  output: DeploymentsOutput,
) => Promise<void>;

const ACTIONS: Readonly<Record<DeploymentsAction, Action>> = {
  async list({ deployments }, { filter, isJson }, { write }) {
    const { name: nameContains, status, limit } = filter;
    const page = deployments.list({
      limit: Math.min(limit, 100),
      ...(nameContains === undefined ? {} : { nameContains }),
      ...(status === undefined ? {} : { status }),
    });
    const found = await page.toArray(limit);
    write(listed(found, isJson, 'no deployments', lineOf));
  },

  async integrations({ integrations }, { isJson }, { write }) {
    const found = await integrations.list();
    write(listed(found, isJson, 'no integrations', ({ id, name }) => columns(id, name)));
  },

  async listeners({ listeners }, { filter: { limit }, isJson }, { write }) {
    const found = await listeners.list({ limit: Math.min(limit, 100) }).toArray(limit);
    const line = ({ id, compute_type, compute_id, compute_config }: Listener): string =>
      columns(id, compute_type, compute_id, compute_config?.k8s_namespaces?.join() ?? '');
    write(listed(found, isJson, 'no listeners', line));
  },

  async get({ deployments }, invocation, { write }) {
    write(told(await deployments.get(invocation.id), undefined, invocation));
  },

  async create({ deployments }, invocation, output) {
    const deployment = withFields(await givenBody(invocation), invocation.fields) as unknown as DeploymentCreate;
    const created = await deployments.create(deployment);
    if (!invocation.isWaiting) return output.write(told(created, undefined, invocation));
    // Whoever ends the wait has to know what there is now.
    output.progress.note(`created ${visible(created.id)}`);
    const deployed = await deployments.waitUntilDeployed(created.id, waitOf(invocation, output));
    output.write(told(deployed.deployment, deployed.revision, invocation));
  },

  async update({ deployments }, invocation, output) {
    const patch = withFields(await givenBody(invocation), invocation.fields) as DeploymentPatch;
    if (Object.keys(patch).length === 0) throw new WordsMistake('expected something to change: --file, or a field');
    await update(deployments, patch, invocation, output);
  },

  async redeploy({ deployments, revisions }, invocation, output) {
    const { id, isWaiting } = invocation;
    const revisionId = invocation.revisionId ?? (await deployments.get(id)).latest_revision_id;
    if (revisionId === null) throw new Error('the deployment has no revision to deploy again');
    if (!isWaiting) return output.write(told(await revisions.redeploy(id, revisionId), undefined, invocation));
    const deployed = await deployments.redeployAndWait(id, revisionId, waitOf(invocation, output));
    output.write(told(deployed.deployment, deployed.revision, invocation));
  },

  async wait({ deployments }, invocation, output) {
    const { id, revisionId } = invocation;
    const wait = { ...waitOf(invocation, output), ...(revisionId === undefined ? {} : { revisionId }) };
    const deployed = await deployments.waitUntilDeployed(id, wait);
    output.write(told(deployed.deployment, deployed.revision, invocation));
  },

  async upload({ deployments }, invocation, output) {
    const uploaded: UploadedSource = await deployments.uploadSource(invocation.id, invocation.path);
    if (!invocation.isDeploying) {
      return output.write(invocation.isJson ? jsonLine(uploaded) : `${visible(uploaded.source_tarball_path)}\n`);
    }
    const fields = { ...invocation.fields, secrets: [] };
    const patch: DeploymentPatch = withFields({ source_revision_config: { ...uploaded } }, fields);
    await update(deployments, patch, invocation, output);
  },

  async delete({ deployments }, { id, isConfirmed, deletesProject, isJson }, { write }) {
    if (!isConfirmed) {
      const { name } = await deployments.get(id);
      const also = deletesProject ? ' with its tracing project' : '';
      throw new Error(`would delete the deployment ${visible(name)}${also}; say so with --yes`);
    }
    await deployments.delete(id, { deleteTracingProject: deletesProject });
    write(isJson ? jsonLine({ id, deleted: true }) : 'deleted\n');
  },
};

async function update(
  deployments: ControlPlane['deployments'],
  patch: DeploymentPatch,
  invocation: DeploymentsInvocation,
  output: DeploymentsOutput,
): Promise<void> {
  const { id, isWaiting } = invocation;
  if (!isWaiting) return output.write(told(await deployments.update(id, patch), undefined, invocation));
  const updated = await deployments.updateAndWait(id, patch, waitOf(invocation, output));
  output.write(told(updated.deployment, updated.revision, invocation));
}

function openControlPlane({ service }: DeploymentsInvocation): ControlPlane {
  const baseUrl = service.url ?? env('RUNSPAN_CONTROL_PLANE_URL');
  if (baseUrl === undefined) throw new Error('no control plane: set RUNSPAN_CONTROL_PLANE_URL, or give --url');
  const [apiKey, tenantId] = [env('RUNSPAN_CONTROL_PLANE_KEY'), env('RUNSPAN_WORKSPACE_ID')];
  const named = (env('RUNSPAN_CONTROL_PLANE_SPELLING') ?? '').split(',').filter((pair) => pair.trim() !== '');
  const pairs = named.map((pair) => pairOf(pair.trim()));
  if (pairs.some(([ours, theirs]) => ours === '' || !theirs)) {
    throw new Error('expected RUNSPAN_CONTROL_PLANE_SPELLING to be like git_host=…,graph_config_path=…');
  }
  const spelling = { ...Object.fromEntries(pairs), ...service.spelling } as Spelling;
  return new ControlPlane({
    baseUrl,
    spelling,
    allowInsecure: env('RUNSPAN_ALLOW_INSECURE') === 'true',
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(tenantId === undefined ? {} : { tenantId }),
  });
}

function waitOf({ timeoutMs }: DeploymentsInvocation, { progress }: DeploymentsOutput) {
  const onStatus = ({ status }: Revision): void => progress.show(visible(status));
  return { onStatus, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

type Body = Record<string, unknown>;

async function givenBody({ file }: DeploymentsInvocation): Promise<Body> {
  return file === undefined ? {} : readGivenObject(file === '-' ? '-' : `@${file}`, '--file');
}

/** What options say, over what the file does. */
function withFields(body: Body, { name, source, repo, ref, config, image, secrets }: DeploymentFields): Body {
  const top = { ...body, ...defined({ name, source }) };
  const sourceConfig = defined({ repo_url: repo });
  const revisionConfig = defined({ repo_ref: ref, graph_config_path: config, image_uri: image });
  const isNew = name !== undefined || body.name !== undefined;
  return {
    ...top,
    ...merged(body, 'source_config', sourceConfig, isNew),
    ...merged(body, 'source_revision_config', revisionConfig, isNew),
    ...(secrets.length === 0 ? {} : { secrets: secrets.map(secretOf) }),
  };
}

/** What is created has both, if only empty. */
function merged(body: Body, field: string, given: Body, isNew: boolean): Body {
  const before = body[field];
  if (Object.keys(given).length === 0) return before === undefined && isNew ? { [field]: {} } : {};
  return { [field]: { ...(typeof before === 'object' ? before : {}), ...given } };
}

function secretOf([name, value]: readonly [string, string | undefined]): { name: string; value: string } {
  const found = value ?? variable(name);
  if (found === undefined) throw new Error(`--secret ${visible(name)}: there is no such variable here`);
  return { name, value: found };
}

function defined(fields: Readonly<Record<string, string | undefined>>): Body {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A deployment as it is printed, with the revision where that was waited for. */
function told(deployment: Deployment, revision: Revision | undefined, { isJson }: DeploymentsInvocation): string {
  if (isJson) return jsonLine(revision === undefined ? deployment : { deployment, revision });
  const { latest_revision_id: latest, source_config: config } = deployment;
  const revisionText = revision === undefined ? (latest ?? 'none') : `${revision.id}  ${revision.status}`;
  const lines = [lineOf(deployment), `  revision  ${visible(revisionText)}`];
  if (config?.custom_url) lines.push(`  address   ${visible(config.custom_url)}`);
  return `${lines.join('\n')}\n`;
}

/** Formats a list with one item per line. */
function listed<Item>(items: readonly Item[], isJson: boolean, none: string, line: (item: Item) => string): string {
  if (isJson) return items.map(jsonLine).join('');
  return `${items.length === 0 ? none : items.map(line).join('\n')}\n`;
}

function lineOf({ id, status, source, name }: Deployment): string {
  return columns(id, status, source, name);
}

function columns(...values: readonly unknown[]): string {
  return values
    .map((value) => visible(String(value)))
    .join('  ')
    .trimEnd();
}

/** What goes into a log has the names of secrets and environment variables, and not their values. */
function jsonLine(value: unknown): string {
  const hide = (key: string, inner: unknown): unknown =>
    (key === 'secrets' || key === 'env') && Array.isArray(inner) ? inner.map(withoutValue) : inner;
  return `${visibleJson(JSON.stringify(value, hide))}\n`;
}

/** Left out, not masked: what was printed and is sent again is refused then, and does not set the mask. */
function withoutValue(variable: unknown): unknown {
  if (typeof variable !== 'object' || variable === null) return variable;
  return Object.fromEntries(Object.entries(variable).filter(([field]) => field !== 'value'));
}
