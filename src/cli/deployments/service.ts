import { monotonicNowMs } from '../../base/clock.ts';
import { env } from '../../base/env.ts';
import { visible, visibleJson } from '../../base/text.ts';
import { ControlPlane } from '../../clients/control-plane/control-plane.ts';
import type { Deployment } from '../../clients/control-plane/deployment.ts';
import type { Revision } from '../../clients/control-plane/revision.ts';
import { RevisionError } from '../../clients/control-plane/revision.ts';
import type { Spelling } from '../../clients/control-plane/spelling.ts';
import {
  type CommandContext,
  CommandFailure,
  type Output,
  pairOf,
  UsageError,
  withCommandNames,
} from '../command-line.ts';

export interface ServiceOptions {
  readonly url?: URL | undefined;
  readonly spelling?: string[] | undefined;
  readonly json?: true | undefined;
}

/** The service with functions that print its responses. */
export interface Service extends Pick<ControlPlane, 'deployments' | 'revisions' | 'integrations' | 'listeners'> {
  readonly progress: WaitProgress;
  /** Prints one line per item. */
  print<Item>(items: readonly Item[], none: string, line: (item: Item) => string): void;
  printItem(item: unknown, text: string): void;
  printDeployment(deployment: Deployment, revision?: Revision): void;
}

const OPTION_NAMES = {
  baseUrl: '--url or RUNSPAN_CONTROL_PLANE_URL',
  apiKey: 'RUNSPAN_CONTROL_PLANE_KEY',
  tenantId: 'RUNSPAN_WORKSPACE_ID',
  spelling: '--spelling or RUNSPAN_CONTROL_PLANE_SPELLING',
  allowInsecure: 'RUNSPAN_ALLOW_INSECURE=true',
};

/** Calls `use` with the service, and closes the service afterwards. */
export async function call(
  options: ServiceOptions,
  { stdout, stderr }: CommandContext,
  use: (service: Service) => Promise<void>,
): Promise<void> {
  const progress = new WaitProgress(stderr);
  const printItem: Service['printItem'] = (item, text) => stdout.write(options.json ? jsonLine(item) : `${text}\n`);
  let controlPlane: ControlPlane | undefined;
  try {
    controlPlane = openControlPlane(options);
    const { deployments, revisions, integrations, listeners } = controlPlane;
    await use({
      deployments,
      revisions,
      integrations,
      listeners,
      progress,
      printItem,
      print: (items, none, line) => {
        if (options.json) stdout.write(items.map(jsonLine).join(''));
        else stdout.write(`${items.length === 0 ? none : items.map(line).join('\n')}\n`);
      },
      printDeployment: (deployment, revision) =>
        printItem(revision === undefined ? deployment : { deployment, revision }, textOf(deployment, revision)),
    });
  } catch (error) {
    const failure = withCommandNames(error, OPTION_NAMES);
    if (!(error instanceof RevisionError)) throw failure;
    throw new CommandFailure((failure as Error).message, error.code === 'RUNSPAN_TIMEOUT' ? 4 : 3);
  } finally {
    await controlPlane?.close();
  }
}

function openControlPlane({ url, spelling = [] }: ServiceOptions): ControlPlane {
  const baseUrl = url ?? env('RUNSPAN_CONTROL_PLANE_URL');
  if (baseUrl === undefined) throw new CommandFailure('no control plane: set RUNSPAN_CONTROL_PLANE_URL or --url');
  const [apiKey, tenantId] = [env('RUNSPAN_CONTROL_PLANE_KEY'), env('RUNSPAN_WORKSPACE_ID')];
  const pairs = (env('RUNSPAN_CONTROL_PLANE_SPELLING') ?? '').split(',').filter((pair) => pair.trim() !== '');
  if (!pairs.every(isPair)) {
    throw new CommandFailure(
      'expected RUNSPAN_CONTROL_PLANE_SPELLING to be for example git_host=…,graph_config_path=…',
    );
  }
  if (!spelling.every(isPair)) throw new UsageError('expected --spelling to be for example git_host=…');
  return new ControlPlane({
    baseUrl,
    spelling: Object.fromEntries([...pairs, ...spelling].map((pair) => pairOf(pair.trim()))) as Spelling,
    allowInsecure: env('RUNSPAN_ALLOW_INSECURE') === 'true',
    ...(apiKey && { apiKey }),
    ...(tenantId && { tenantId }),
  });
}

function isPair(text: string): boolean {
  const [ours, theirs] = pairOf(text.trim());
  return ours !== '' && Boolean(theirs);
}

function textOf(deployment: Deployment, revision: Revision | undefined): string {
  const { latest_revision_id: latest, source_config: config } = deployment;
  const revisionText = revision === undefined ? (latest ?? 'none') : `${revision.id}  ${revision.status}`;
  const lines = [lineOf(deployment), `  revision  ${visible(revisionText)}`];
  if (config?.custom_url) lines.push(`  address   ${visible(config.custom_url)}`);
  return lines.join('\n');
}

export function lineOf({ id, status, source, name }: Deployment): string {
  return columns(id, status, source, name);
}

export function columns(...values: readonly unknown[]): string {
  return values
    .map((value) => visible(String(value)))
    .join('  ')
    .trimEnd();
}

/** Prints the names of secrets and environment variables without their values, because CI logs are not confidential. */
function jsonLine(value: unknown): string {
  const hide = (key: string, inner: unknown): unknown =>
    (key === 'secrets' || key === 'env') && Array.isArray(inner) ? inner.map(withoutValue) : inner;
  return `${visibleJson(JSON.stringify(value, hide))}\n`;
}

/** Removes the value instead of masking it: if the output is sent again, the service rejects it and does not store a mask. */
function withoutValue(variable: unknown): unknown {
  if (typeof variable !== 'object' || variable === null) return variable;
  return Object.fromEntries(Object.entries(variable).filter(([field]) => field !== 'value'));
}

/** Prints a line for each status with the time since the start. */
class WaitProgress {
  readonly #stream: Output;
  readonly #startedMs: number = monotonicNowMs();

  constructor(stream: Output) {
    this.#stream = stream;
  }

  note(line: string): void {
    this.#stream.write(`${line}\n`);
  }

  show(status: string): void {
    this.note(`${status}  ${Math.round((monotonicNowMs() - this.#startedMs) / 1_000)} s`);
  }
}
