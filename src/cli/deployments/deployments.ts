import { type Command, Option } from '@commander-js/extra-typings';
import { variable } from '../../base/env.ts';
import { visible } from '../../base/text.ts';
import type { DeploymentCreate, DeploymentPatch } from '../../clients/control-plane/deployment.ts';
import type { Listener } from '../../clients/control-plane/listeners.ts';
import type { Revision } from '../../clients/control-plane/revision.ts';
import {
  type CommandContext,
  CommandFailure,
  collect,
  duration,
  pairOf,
  readJsonObject,
  UsageError,
  webAddress,
  wholeNumber,
} from '../command-line.ts';
import { call, columns, lineOf, type Service } from './service.ts';

const HELP = `
The service, its API key and the workspace are read from RUNSPAN_CONTROL_PLANE_URL,
RUNSPAN_CONTROL_PLANE_KEY and RUNSPAN_WORKSPACE_ID.

Exit code:
  0; 1 if a request fails; 2 for invalid arguments or JSON; 3 if the revision will not be deployed;
  4 if it is not deployed in time`;

interface FieldOptions {
  readonly file?: string | undefined;
  readonly name?: string | undefined;
  readonly source?: string | undefined;
  readonly repo?: string | undefined;
  readonly ref?: string | undefined;
  readonly config?: string | undefined;
  readonly image?: string | undefined;
  readonly secret?: string[] | undefined;
}

interface WaitOptions {
  readonly wait?: true | undefined;
  readonly timeout?: number | undefined;
}

export function define(command: Command, context: CommandContext): void {
  command
    .description('Deploys agents from a terminal or from CI, and waits until they are deployed.')
    .addHelpText('after', HELP);
  defineLists(command, context);
  defineChanges(command, context);
  defineRevisions(command, context);
}

function defineLists(command: Command, context: CommandContext): void {
  withServiceOptions(command.command('list').description('List deployments.'))
    .option('--name <part>', 'part of the name')
    .option('--status <status>', 'status of the deployment')
    .addOption(limitOption())
    .action((options) =>
      call(options, context, async ({ deployments, print }) => {
        const { name: nameContains, status, limit } = options;
        const filter = { ...(nameContains && { nameContains }), ...(status && { status }) };
        const found = await deployments.list({ limit: Math.min(limit, 100), ...filter }).toArray(limit);
        print(found, 'no deployments', lineOf);
      }),
    );

  withServiceOptions(
    command
      .command('integrations')
      .description(
        'List the installations at hosts of git repositories. A deployment refers to one as integration_id.',
      ),
  ).action((options) =>
    call(options, context, async ({ integrations, print }) =>
      print(await integrations.list(), 'no integrations', ({ id, name }) => columns(id, name)),
    ),
  );

  withServiceOptions(
    command
      .command('listeners')
      .description('List the clusters that you host. A deployment refers to one as listener_id.'),
  )
    .addOption(limitOption())
    .action((options) =>
      call(options, context, async ({ listeners, print }) => {
        const { limit } = options;
        const found = await listeners.list({ limit: Math.min(limit, 100) }).toArray(limit);
        const line = ({ id, compute_type, compute_id, compute_config }: Listener): string =>
          columns(id, compute_type, compute_id, compute_config?.k8s_namespaces?.join() ?? '');
        print(found, 'no listeners', line);
      }),
    );

  withServiceOptions(command.command('get').description('Show a deployment.').argument('<id>')).action((id, options) =>
    call(options, context, async ({ deployments, printDeployment }) => printDeployment(await deployments.get(id))),
  );
}

function defineChanges(command: Command, context: CommandContext): void {
  withWaitOptions(withServiceOptions(withFieldOptions(command.command('create').description('Create a deployment.'))))
    .option('--name <name>', 'name of the deployment')
    .option('--source <source>', 'source of the code or the image')
    .option('--repo <url>', 'address of the git repository')
    .action((options) =>
      call(options, context, async ({ deployments, printDeployment, progress }) => {
        checkWait(options);
        const body = withFields(await bodyOf(options), options) as unknown as DeploymentCreate;
        const created = await deployments.create(body);
        if (!options.wait) return printDeployment(created);
        // If the wait is interrupted, the id is needed to wait again.
        progress.note(`created ${visible(created.id)}`);
        const deployed = await deployments.waitUntilDeployed(created.id, waitOf(options, progress));
        printDeployment(deployed.deployment, deployed.revision);
      }),
    );

  withWaitOptions(
    withServiceOptions(
      withFieldOptions(
        command
          .command('update')
          .description(
            'Change a deployment, which creates a revision. With --secret, all existing secrets are replaced.',
          )
          .argument('<id>'),
      ),
    ),
  ).action((id, options) =>
    call(options, context, async (service) => {
      const patch = withFields(await bodyOf(options), options) as DeploymentPatch;
      if (Object.keys(patch).length === 0) throw new UsageError('expected something to change: --file or a field');
      await update(service, id, patch, options);
    }),
  );
}

function defineRevisions(command: Command, context: CommandContext): void {
  withWaitOptions(
    withServiceOptions(command.command('redeploy').description('Deploy a revision again.').argument('<id>')),
  )
    .option('--revision <id>', 'revision (default: the latest)')
    .action((id, options) =>
      call(options, context, async ({ deployments, revisions, printDeployment, progress }) => {
        checkWait(options);
        const revisionId = options.revision ?? (await deployments.get(id)).latest_revision_id;
        if (revisionId === null) throw new CommandFailure('the deployment has no revision to deploy again');
        if (!options.wait) return printDeployment(await revisions.redeploy(id, revisionId));
        const deployed = await deployments.redeployAndWait(id, revisionId, waitOf(options, progress));
        printDeployment(deployed.deployment, deployed.revision);
      }),
    );

  withServiceOptions(command.command('wait').description('Wait until a revision is deployed.').argument('<id>'))
    .option('--revision <id>', 'revision (default: the latest)')
    .addOption(timeoutOption())
    .action((id, options) =>
      call(options, context, async ({ deployments, printDeployment, progress }) => {
        const revision = options.revision === undefined ? {} : { revisionId: options.revision };
        const deployed = await deployments.waitUntilDeployed(id, { ...waitOf(options, progress), ...revision });
        printDeployment(deployed.deployment, deployed.revision);
      }),
    );

  withWaitOptions(
    withServiceOptions(
      command
        .command('upload')
        .description('Upload a folder or a .tar.gz file as the source of a deployment.')
        .argument('<id>')
        .argument('<path>', 'folder or archive file'),
    ),
  )
    .option('--deploy', 'create a revision of the uploaded source')
    .option('--config <path>', 'path of the graph configuration')
    .action((id, path, options) =>
      call(options, context, async (service) => {
        if (!options.deploy && (options.wait || options.config !== undefined)) {
          throw new UsageError('--wait and --config require --deploy');
        }
        const uploaded = await service.deployments.uploadSource(id, path);
        if (!options.deploy) return service.printItem(uploaded, visible(uploaded.source_tarball_path));
        const patch = withFields({ source_revision_config: { ...uploaded } }, { config: options.config });
        await update(service, id, patch, options);
      }),
    );

  withServiceOptions(command.command('delete').description('Delete a deployment.').argument('<id>'))
    .option('--yes', 'delete; without this option, only show what would be deleted')
    .option('--delete-project', 'also delete the tracing project')
    .action((id, { yes, deleteProject = false, ...options }) =>
      call(options, context, async ({ deployments, printItem }) => {
        if (!yes) {
          const { name } = await deployments.get(id);
          const also = deleteProject ? ' with its tracing project' : '';
          throw new CommandFailure(`would delete deployment ${visible(name)}${also}; pass --yes to confirm`);
        }
        await deployments.delete(id, { deleteTracingProject: deleteProject });
        printItem({ id, deleted: true }, 'deleted');
      }),
    );
}

function withServiceOptions<Args extends unknown[], Options extends Record<string, unknown>>(
  command: Command<Args, Options>,
) {
  return command
    .option('--url <address>', 'service (default: RUNSPAN_CONTROL_PLANE_URL)', webAddress('--url'))
    .option(
      '--spelling <ours=theirs>',
      'name of a field as the service spells it, e.g. git_host=…; can be repeated, or set RUNSPAN_CONTROL_PLANE_SPELLING with commas',
      collect,
    )
    .option('--json', 'print the response as JSON, one object per line');
}

function withFieldOptions<Args extends unknown[], Options extends Record<string, unknown>>(
  command: Command<Args, Options>,
) {
  return command
    .option('--file <file>', 'deployment as JSON; - reads standard input; other options take precedence')
    .option('--ref <ref>', 'branch or refs/tags/…')
    .option('--config <path>', 'path of the graph configuration')
    .option('--image <uri>', 'address of the image')
    .option(
      '--secret <name>',
      'environment variable of the deployment, with its value here; <name>=<value> is visible to other users of this machine; can be repeated',
      collect,
    );
}

function withWaitOptions<Args extends unknown[], Options extends Record<string, unknown>>(
  command: Command<Args, Options>,
) {
  return command
    .option('--wait', 'wait until the revision is deployed, with its status on standard error')
    .addOption(timeoutOption());
}

function timeoutOption() {
  return new Option('--timeout <time>', 'limit of the wait, e.g. 90s or 1h (default: 15m)').argParser(
    duration('--timeout'),
  );
}

function limitOption() {
  return new Option('--limit <n>', 'number of items, from 1 to 1000')
    .argParser(wholeNumber('--limit', 1, 1_000))
    .default(20);
}

function checkWait({ wait, timeout }: WaitOptions): void {
  if (timeout !== undefined && !wait) throw new UsageError('--timeout requires --wait');
}

async function update(
  { deployments, printDeployment, progress }: Service,
  id: string,
  patch: DeploymentPatch,
  options: WaitOptions,
): Promise<void> {
  checkWait(options);
  if (!options.wait) return printDeployment(await deployments.update(id, patch));
  const updated = await deployments.updateAndWait(id, patch, waitOf(options, progress));
  printDeployment(updated.deployment, updated.revision);
}

function waitOf({ timeout }: WaitOptions, progress: Service['progress']) {
  const onStatus = ({ status }: Revision): void => progress.show(visible(status));
  return { onStatus, ...(timeout && { timeoutMs: timeout }) };
}

type Body = Record<string, unknown>;

async function bodyOf({ file }: FieldOptions): Promise<Body> {
  return file === undefined ? {} : readJsonObject(file === '-' ? '-' : `@${file}`, '--file');
}

/** Options take precedence over the file. */
function withFields(body: Body, { name, source, repo, ref, config, image, secret }: FieldOptions): Body {
  const isNew = name !== undefined || body.name !== undefined;
  return {
    ...body,
    ...defined({ name, source }),
    ...merged(body, 'source_config', defined({ repo_url: repo }), isNew),
    ...merged(
      body,
      'source_revision_config',
      defined({ repo_ref: ref, graph_config_path: config, image_uri: image }),
      isNew,
    ),
    ...(secret && { secrets: secret.map(secretOf) }),
  };
}

/** A new deployment must have both fields, even if they are empty. */
function merged(body: Body, field: string, given: Body, isNew: boolean): Body {
  const before = body[field];
  if (Object.keys(given).length === 0) return before === undefined && isNew ? { [field]: {} } : {};
  return { [field]: { ...(typeof before === 'object' ? before : {}), ...given } };
}

function secretOf(text: string): { name: string; value: string } {
  const [name, given] = pairOf(text);
  if (name === '') throw new UsageError('expected --secret to be <name> or <name>=<value>');
  const value = given ?? variable(name);
  if (value === undefined) throw new CommandFailure(`--secret ${visible(name)}: this environment variable is not set`);
  return { name, value };
}

function defined(fields: Readonly<Record<string, string | undefined>>): Body {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
