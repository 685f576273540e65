import { monotonicNowMs } from '../../base/clock.ts';
import { visible, visibleJson } from '../../base/text.ts';
import { ControlPlane } from '../../clients/control-plane/control-plane.ts';
import type { Deployment } from '../../clients/control-plane/deployment.ts';
import type { Updated } from '../../clients/control-plane/deployment-wait.ts';
import { type Revision, RevisionError } from '../../clients/control-plane/revision.ts';
import type { Spelling } from '../../clients/control-plane/spelling.ts';
import { env } from '../../config/environment.ts';
import { isFields, without } from '../../payload/fields.ts';
import { type CommandContext, CommandFailure, pairOf, UsageError, withCommandNames } from '../command-line.ts';

export interface ServiceOptions {
  readonly url?: URL | undefined;
  readonly spelling?: string[] | undefined;
  readonly json?: true | undefined;
}

const OPTION_NAMES = {
  baseUrl: '--url or RUNSPAN_CONTROL_PLANE_URL',
  apiKey: 'RUNSPAN_CONTROL_PLANE_KEY',
  tenantId: 'RUNSPAN_WORKSPACE_ID',
  spelling: '--spelling',
  allowInsecure: 'RUNSPAN_ALLOW_INSECURE=true',
};

/** Calls `use` with a client for the deployment service, then closes the client. */
export async function call(
  options: ServiceOptions,
  context: CommandContext,
  use: (service: ControlPlane, printer: Printer) => Promise<void>,
): Promise<void> {
  let service: ControlPlane | undefined;
  try {
    service = openService(options);
    await use(service, new Printer(options, context));
  } catch (error) {
    const failure = withCommandNames(error, OPTION_NAMES);
    if (!(error instanceof RevisionError)) throw failure;
    throw new CommandFailure((failure as Error).message, error.code === 'RUNSPAN_TIMEOUT' ? 4 : 3);
  } finally {
    await service?.close();
  }
}

function openService({ url, spelling = [] }: ServiceOptions): ControlPlane {
  const baseUrl = url ?? env('RUNSPAN_CONTROL_PLANE_URL');
  if (baseUrl === undefined) throw new UsageError('no control plane: set RUNSPAN_CONTROL_PLANE_URL or --url');
  const [apiKey, tenantId] = [env('RUNSPAN_CONTROL_PLANE_KEY'), env('RUNSPAN_WORKSPACE_ID')];
  return new ControlPlane({
    baseUrl,
    spelling: Object.fromEntries(spelling.map(spellingOf)) as Spelling,
    allowInsecure: env('RUNSPAN_ALLOW_INSECURE') === 'true',
    ...(apiKey && { apiKey }),
    ...(tenantId && { tenantId }),
  });
}

function spellingOf(text: string): readonly [name: string, wireName: string] {
  const [name, wireName] = pairOf(text.trim());
  if (name !== '' && wireName) return [name, wireName];
  throw new UsageError(`expected ${OPTION_NAMES.spelling} to be a pair such as git_host=…`);
}

/** Prints each response as text, or as one line of JSON with `--json`. */
export class Printer {
  readonly #isJson: boolean;
  readonly #context: CommandContext;
  readonly #startedMs: number = monotonicNowMs();

  constructor({ json }: ServiceOptions, context: CommandContext) {
    this.#isJson = json === true;
    this.#context = context;
  }

  list<Item>(items: readonly Item[], none: string, lineOf: (item: Item) => string): void {
    for (const item of items) this.item(item, lineOf(item));
    if (items.length === 0 && !this.#isJson) this.#context.stdout.write(`${none}\n`);
  }

  item(item: unknown, text: string): void {
    this.#context.stdout.write(this.#isJson ? jsonLine(item) : `${text}\n`);
  }

  deployment({ deployment, revision }: Pick<Updated, 'deployment'> & Partial<Updated>): void {
    this.item(revision === undefined ? deployment : { deployment, revision }, textOf(deployment, revision));
  }

  note(line: string): void {
    this.#context.stderr.write(`${line}\n`);
  }

  status({ status }: Revision): void {
    this.note(`${visible(status)}  ${Math.round((monotonicNowMs() - this.#startedMs) / 1_000)} s`);
  }
}

function textOf(deployment: Deployment, revision: Revision | undefined): string {
  const { latest_revision_id: latest, source_config: config } = deployment;
  const revisionText = revision === undefined ? (latest ?? 'none') : `${revision.id}  ${revision.status}`;
  const lines = [lineOf(deployment), `  revision  ${visible(revisionText)}`];
  if (config?.custom_url) lines.push(`  url       ${visible(config.custom_url)}`);
  return lines.join('\n');
}

export function lineOf({ id, status, source, name }: Deployment): string {
  return columns(id, status, source, name);
}

export function columns(...values: readonly unknown[]): string {
  return visible(values.map(String).join('  ').trimEnd());
}

/**
 * Returns one line of JSON. The values of secrets and environment variables are omitted, because CI logs may be public.
 */
function jsonLine(value: unknown): string {
  // If a user sends the output back, the service rejects a missing value but would store a masked one.
  const withoutValue = (variable: unknown): unknown => (isFields(variable) ? without(variable, VALUE) : variable);
  const hide = (key: string, inner: unknown): unknown =>
    (key === 'secrets' || key === 'env') && Array.isArray(inner) ? inner.map(withoutValue) : inner;
  return `${visibleJson(JSON.stringify(value, hide))}\n`;
}

const VALUE: ReadonlySet<string> = new Set(['value']);
