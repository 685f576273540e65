import type { Command } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import type { DeploymentCreate, DeploymentPatch } from '../../clients/control-plane/deployment.ts';
import type { Listener } from '../../clients/control-plane/listeners.ts';
import { variable } from '../../config/environment.ts';
import { defined } from '../../payload/fields.ts';
import {
  type CommandContext,
  CommandFailure,
  collect,
  durationArgument,
  type OptionsOf,
  pairOf,
  readJsonObject,
  UsageError,
  webAddress,
  wholeNumber,
} from '../command-line.ts';
import { call, columns, lineOf, type Printer } from './service.ts';

const HELP = `
The service, its API key and the workspace are read from RUNSPAN_CONTROL_PLANE_URL,
RUNSPAN_CONTROL_PLANE_KEY and RUNSPAN_WORKSPACE_ID.

Exit code:
  0 on success; 1 if a request fails or a file cannot be read; 2 for invalid arguments or JSON; 3 if
  the revision will not be deployed; 4 if the timeout is reached`;

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
    .option('--limit <n>', 'number of items, from 1 to 1000', wholeNumber(1, 1_000), 20)
    .action(({ name: nameContains, status, limit, ...options }) =>
      call(options, context, async ({ deployments }, printer) => {
        const filter = { ...(nameContains && { nameContains }), ...(status && { status }) };
        const found = await deployments.list({ limit: Math.min(limit, 100), ...filter }).toArray(limit);
        printer.list(found, 'no deployments', lineOf);
      }),
    );

  withServiceOptions(
    command
      .command('integrations')
      .description('List the installations on git hosts. A deployment refers to an installation by integration_id.'),
  ).action((options) =>
    call(options, context, async ({ integrations }, printer) =>
      printer.list(await integrations.list(), 'no integrations', ({ id, name }) => columns(id, name)),
    ),
  );

  withServiceOptions(
    command
      .command('listeners')
      .description('List your own clusters. A deployment refers to a cluster by listener_id.'),
  )
    .option('--limit <n>', 'number of items, from 1 to 1000', wholeNumber(1, 1_000), 20)
    .action(({ limit, ...options }) =>
      call(options, context, async ({ listeners }, printer) => {
        const found = await listeners.list({ limit: Math.min(limit, 100) }).toArray(limit);
        const line = ({ id, compute_type, compute_id, compute_config }: Listener): string =>
          columns(id, compute_type, compute_id, compute_config?.k8s_namespaces?.join() ?? '');
        printer.list(found, 'no listeners', line);
      }),
    );

  withServiceOptions(command.command('get').description('Show a deployment.'))
    .argument('<id>')
    .action((id, options) =>
      call(options, context, async ({ deployments }, printer) =>
        printer.deployment({ deployment: await deployments.get(id) }),
      ),
    );
}

function defineChanges(command: Command, context: CommandContext): void {
  withFieldOptions(command.command('create').description('Create a deployment.'))
    .option('--name <name>', 'name of the deployment')
    .option('--source <source>', 'where the code or the image comes from')
    .option('--repo <url>', 'URL of the git repository')
    .action(({ name, source, repo, ...options }) =>
      call(options, context, async ({ deployments }, printer) => {
        // The service requires `source_config` and `source_revision_config`, even if both are empty.
        const body = { source_config: {}, source_revision_config: {}, ...(await bodyOf(options)) };
        const fields = { ...body, ...defined({ name, source }), ...merged(body, 'source_config', { repo_url: repo }) };
        const deployment = await deployments.create(fields as unknown as DeploymentCreate);
        if (!options.wait) return printer.deployment({ deployment });
        // Prints the id before waiting, so that an interrupted wait can be resumed.
        printer.note(`created ${visible(deployment.id)}`);
        printer.deployment(await deployments.waitUntilDeployed(deployment.id, waitOptions(options, printer)));
      }),
    );

  withFieldOptions(
    command
      .command('update')
      .description('Change a deployment, which creates a revision. With --secret, all existing secrets are replaced.'),
  )
    .argument('<id>')
    .action((id, options) =>
      call(options, context, async ({ deployments }, printer) => {
        const patch = (await bodyOf(options)) as DeploymentPatch;
        if (Object.keys(patch).length === 0)
          throw new UsageError('nothing to change: pass --file or an option for a field');
        printer.deployment(
          options.wait
            ? await deployments.updateAndWait(id, patch, waitOptions(options, printer))
            : { deployment: await deployments.update(id, patch) },
        );
      }),
    );

  withServiceOptions(command.command('delete').description('Delete a deployment.'))
    .argument('<id>')
    .option('--yes', 'delete; without this option, only show what would be deleted')
    .option('--delete-project', 'also delete the tracing project')
    .action((id, { yes, deleteProject = false, ...options }) =>
      call(options, context, async ({ deployments }, printer) => {
        if (!yes) {
          const { name } = await deployments.get(id);
          const also = deleteProject ? ' with its tracing project' : '';
          throw new CommandFailure(`would delete deployment ${visible(name)}${also}; pass --yes to confirm`);
        }
        await deployments.delete(id, { deleteTracingProject: deleteProject });
        printer.item({ id, deleted: true }, 'deleted');
      }),
    );
}

function defineRevisions(command: Command, context: CommandContext): void {
  withWaitOptions(command.command('redeploy').description('Deploy a revision again.'))
    .argument('<id>')
    .option('--revision <id>', 'revision (default: the latest)')
    .action((id, options) =>
      call(options, context, async ({ deployments, revisions }, printer) => {
        const revisionId = options.revision ?? (await deployments.get(id)).latest_revision_id;
        if (revisionId === null) throw new CommandFailure('the deployment has no revision to deploy again');
        printer.deployment(
          options.wait
            ? await deployments.redeployAndWait(id, revisionId, waitOptions(options, printer))
            : { deployment: await revisions.redeploy(id, revisionId) },
        );
      }),
    );

  withServiceOptions(command.command('wait').description('Wait until a revision is deployed.'))
    .argument('<id>')
    .option('--revision <id>', 'revision (default: the latest)')
    .option('--timeout <time>', TIMEOUT, durationArgument)
    .action((id, options) =>
      call(options, context, async ({ deployments }, printer) => {
        const revision = options.revision === undefined ? {} : { revisionId: options.revision };
        const wait = { ...waitOptions(options, printer), ...revision };
        printer.deployment(await deployments.waitUntilDeployed(id, wait));
      }),
    );

  withWaitOptions(
    command.command('upload').description('Upload a folder or a .tar.gz file as the source of a deployment.'),
  )
    .argument('<id>')
    .argument('<path>', 'folder or archive file')
    .option('--deploy', 'create a revision of the uploaded source')
    .option('--config <path>', 'path of the graph configuration')
    .action((id, path, { deploy, config, ...options }) =>
      call(options, context, async ({ deployments }, printer) => {
        if (!deploy && (options.wait || config !== undefined)) {
          throw new UsageError('--wait and --config require --deploy');
        }
        const uploaded = await deployments.uploadSource(id, path);
        if (!deploy) return printer.item(uploaded, visible(uploaded.source_tarball_path));
        const patch = { source_revision_config: { ...uploaded, ...defined({ graph_config_path: config }) } };
        printer.deployment(
          options.wait
            ? await deployments.updateAndWait(id, patch, waitOptions(options, printer))
            : { deployment: await deployments.update(id, patch) },
        );
      }),
    );
}

function withServiceOptions(command: Command) {
  return command
    .option('--url <url>', 'URL of the service (default: RUNSPAN_CONTROL_PLANE_URL)', webAddress)
    .option(
      '--spelling <ours=theirs>',
      'name that the service uses for a field, e.g. git_host=…; can be repeated',
      collect,
    )
    .option('--json', 'print the response as JSON, one object per line');
}

const TIMEOUT = 'maximum time to wait, e.g. 90s or 1h (default: 15m)';

function withWaitOptions(command: Command) {
  return withServiceOptions(command)
    .option('--wait', 'wait until the revision is deployed, and print its status on standard error')
    .option('--timeout <time>', TIMEOUT, durationArgument)
    .hook('preAction', (called) => {
      const { wait, timeout } = called.opts();
      if (timeout !== undefined && !wait) throw new UsageError('--timeout requires --wait');
    });
}

function waitOptions({ timeout }: { readonly timeout?: number | undefined }, printer: Printer) {
  return {
    onStatus: (revision: Parameters<Printer['status']>[0]) => printer.status(revision),
    ...(timeout && { timeoutMs: timeout }),
  };
}

function withFieldOptions(command: Command) {
  return withWaitOptions(command)
    .option('--file <file>', 'deployment as JSON; - reads standard input; other options take precedence')
    .option('--ref <ref>', 'branch or refs/tags/…')
    .option('--config <path>', 'path of the graph configuration')
    .option('--image <uri>', 'URI of the image')
    .option(
      '--secret <name>',
      'secret of the deployment, read from this environment variable; <name>=<value> is visible to other users of this machine; can be repeated',
      collect,
    );
}

type Body = Record<string, unknown>;

/** Returns the fields from `--file`, overridden by fields from other options. */
async function bodyOf({ file, ref, config, image, secret }: OptionsOf<typeof withFieldOptions>): Promise<Body> {
  const body = file === undefined ? {} : await readJsonObject(file, '--file');
  const revision = { repo_ref: ref, graph_config_path: config, image_uri: image };
  return {
    ...body,
    ...merged(body, 'source_revision_config', revision),
    ...(secret && { secrets: secret.map(secretOf) }),
  };
}

function merged(body: Body, field: string, given: Readonly<Record<string, string | undefined>>): Body {
  const fields = defined(given);
  return Object.keys(fields).length === 0 ? {} : { [field]: { ...(body[field] as object | undefined), ...fields } };
}

function secretOf(text: string): { name: string; value: string } {
  const [name, given] = pairOf(text);
  if (name === '') throw new UsageError('expected --secret to be <name> or <name>=<value>');
  const value = given ?? variable(name);
  if (value === undefined) throw new UsageError(`--secret ${visible(name)}: this environment variable is not set`);
  return { name, value };
}
