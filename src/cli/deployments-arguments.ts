import { quoted } from './terminal-text.ts';
import { lastOf, readWords, type Words, webAddress } from './words.ts';

/** What there is to do with deployments. */
export type DeploymentsAction =
  | 'list'
  | 'get'
  | 'create'
  | 'update'
  | 'redeploy'
  | 'wait'
  | 'upload'
  | 'delete'
  | 'integrations'
  | 'listeners';

/** `runspan deployments …` */
export interface DeploymentsInvocation {
  readonly kind: 'deployments';
  readonly action: DeploymentsAction;
  readonly service: ControlPlanePlace;
  /** The id of the deployment, or an empty string if the action needs none. */
  readonly id: string;
  readonly revisionId: string | undefined;
  /** What is uploaded: a folder, or an archive. */
  readonly path: string;
  /** The file that holds what is created or changed, `-` for standard input. */
  readonly file: string | undefined;
  /** What single options say of it, over the file. */
  readonly fields: DeploymentFields;
  readonly filter: { readonly name: string | undefined; readonly status: string | undefined; readonly limit: number };
  /** It ends when the revision is deployed, or will not be. */
  readonly isWaiting: boolean;
  readonly timeoutMs: number | undefined;
  /** What was uploaded becomes a revision. */
  readonly isDeploying: boolean;
  readonly deletesProject: boolean;
  readonly isConfirmed: boolean;
  readonly isJson: boolean;
}

/** The service, as words say it. */
export interface ControlPlanePlace {
  readonly url: URL | undefined;
  /** Words on the wire by those of the interface. */
  readonly spelling: Readonly<Record<string, string>>;
}

/** Fields of a deployment that have an option. */
export interface DeploymentFields {
  readonly name: string | undefined;
  readonly source: string | undefined;
  readonly repo: string | undefined;
  readonly ref: string | undefined;
  readonly config: string | undefined;
  readonly image: string | undefined;
  /** By name; without a value it is taken from the environment. */
  readonly secrets: readonly (readonly [name: string, value: string | undefined])[];
}

type Parsed =
  | DeploymentsInvocation
  | { readonly kind: 'help'; readonly topic: 'deployments' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'deployments' };

export const deploymentsUsage = `Usage: runspan deployments list [--name <part>] [--status <status>] [--limit <n>]
       runspan deployments get <id>
       runspan deployments create [--file <file>] [fields] [--wait]
       runspan deployments update <id> [--file <file>] [fields] [--wait]
       runspan deployments redeploy <id> [--revision <id>] [--wait]
       runspan deployments wait <id> [--revision <id>]
       runspan deployments upload <id> <folder or .tar.gz> [--deploy] [--config <path>] [--wait]
       runspan deployments delete <id> --yes [--delete-project]
       runspan deployments integrations
       runspan deployments listeners [--limit <n>]

Deploys agents from a terminal or from CI. The service and the key for it are taken from
RUNSPAN_CONTROL_PLANE_URL and RUNSPAN_CONTROL_PLANE_KEY, the workspace from RUNSPAN_WORKSPACE_ID.

integrations lists the installations at the host of git repositories, and listeners the clusters of
your own: a deployment takes their ids as integration_id and listener_id.

Fields:
  --file <file>      a deployment, or what to change of it, as JSON; - reads standard input
  --name <name>, --source <source>, --repo <url>, --ref <branch or refs/tags/…>,
  --config <path of the graph configuration>, --image <uri>
                     over what the file says
  --secret <name>    an environment variable of the deployment, with the value that it has here;
                     <name>=<value> is seen by whoever lists processes; more than once. Those of an
                     update take the place of all that there were

Options:
  --wait             until the revision is deployed, with its status on standard error
  --timeout <time>   how long to wait, as 90s, 15m or 1h (default 15m)
  --revision <id>    of which (default: the latest)
  --deploy           upload: make a revision of what was uploaded
  --delete-project   delete: also the tracing project
  --yes              delete: without it, only say what would be deleted
  --url <address>    the service, in the place of RUNSPAN_CONTROL_PLANE_URL
  --spelling <ours>=<theirs>
                     a word of the interface as the service spells it, git_host=… for example;
                     more than once, or RUNSPAN_CONTROL_PLANE_SPELLING with commas
  --json             print what the service answers as JSON, one object on a line
  -h, --help         print this

Exit code:
  0; 1 when a call fails; 2 for a mistake in the arguments, or JSON that is none; 3 when the
  revision will not be deployed; 4 when the time to wait is over
`;

const ACTIONS: readonly string[] = [
  'list',
  'get',
  'create',
  'update',
  'redeploy',
  'wait',
  'upload',
  'delete',
  'integrations',
  'listeners',
] satisfies DeploymentsAction[];

const FIELDS = ['file', 'name', 'source', 'repo', 'ref', 'config', 'image', 'secret'];
const WAIT = ['wait', 'timeout'];

/** Options that belong to some actions alone. */
const ALLOWED: Readonly<Record<DeploymentsAction, readonly string[]>> = {
  list: ['name', 'status', 'limit'],
  get: [],
  create: [...FIELDS, ...WAIT],
  update: [...FIELDS.filter((field) => field !== 'name' && field !== 'source' && field !== 'repo'), ...WAIT],
  redeploy: ['revision', ...WAIT],
  wait: ['revision', 'timeout'],
  upload: ['deploy', 'config', ...WAIT],
  delete: ['yes', 'delete-project'],
  integrations: [],
  listeners: ['limit'],
};
const WITHOUT_ID: readonly DeploymentsAction[] = ['list', 'create', 'integrations', 'listeners'];
const EVERYWHERE = ['url', 'spelling', 'json', 'help'];

const LIMIT = 20;
const LIMIT_MAX = 1_000;

/** Reads the arguments after `runspan deployments`. Never throws. */
export function parseDeployments(argv: readonly string[]): Parsed {
  const words = readWords(argv, {
    texts: [...FIELDS, 'status', 'limit', 'timeout', 'revision', 'url', 'spelling'],
    flags: ['wait', 'deploy', 'delete-project', 'yes', 'json'],
  });
  if ('wrong' in words) return mistake(words.wrong);
  const { flags, values, positionals } = words;
  if (flags.has('help')) return { kind: 'help', topic: 'deployments' };
  const [given, id, path, ...more] = positionals;
  if (given === undefined) return mistake(`expected ${ACTIONS.join(', ')} after deployments`);
  if (!ACTIONS.includes(given)) return mistake(`unknown command ${quoted(`deployments ${given}`)}`);
  const action = given as DeploymentsAction;
  const problem =
    problemOfPlace(action, [id, path, ...more]) ??
    problemOfOptions(action, [...values.keys(), ...flags]) ??
    problemOfWait(action, flags, values);
  if (problem !== undefined) return mistake(problem);
  const timeoutMs = durationMs(lastOf(words, 'timeout'));
  if (timeoutMs === 'none') return mistake('expected --timeout to be like 90s, 15m or 1h');
  const limit = countOf(lastOf(words, 'limit'));
  if (limit === undefined) return mistake(`expected --limit to be a number from 1 to ${LIMIT_MAX}`);
  const service = placeOf(words);
  if (typeof service === 'string') return mistake(service);
  const secrets = (values.get('secret') ?? []).map(pairOf);
  if (secrets.some(([name]) => name === '')) return mistake('expected --secret to be a name, or <name>=<value>');
  return {
    kind: 'deployments',
    action,
    service,
    id: id ?? '',
    revisionId: lastOf(words, 'revision'),
    path: path ?? '',
    file: lastOf(words, 'file'),
    fields: {
      name: lastOf(words, 'name'),
      source: lastOf(words, 'source'),
      repo: lastOf(words, 'repo'),
      ref: lastOf(words, 'ref'),
      config: lastOf(words, 'config'),
      image: lastOf(words, 'image'),
      secrets,
    },
    filter: { name: lastOf(words, 'name'), status: lastOf(words, 'status'), limit },
    isWaiting: flags.has('wait') || action === 'wait',
    timeoutMs,
    isDeploying: flags.has('deploy'),
    deletesProject: flags.has('delete-project'),
    isConfirmed: flags.has('yes'),
    isJson: flags.has('json'),
  };
}

function problemOfPlace(action: DeploymentsAction, given: readonly (string | undefined)[]): string | undefined {
  const places = given.filter((word) => word !== undefined);
  const expected = WITHOUT_ID.includes(action) ? [] : ['the id of a deployment'];
  if (action === 'upload') expected.push('a folder or an archive');
  const missing = expected[places.length];
  if (missing !== undefined) return `expected ${missing} after deployments ${action}`;
  const extra = places[expected.length];
  return extra === undefined ? undefined : `unexpected ${quoted(extra)}`;
}

function problemOfOptions(action: DeploymentsAction, given: readonly string[]): string | undefined {
  const allowed = [...ALLOWED[action], ...EVERYWHERE];
  const foreign = given.find((option) => !allowed.includes(option));
  return foreign === undefined ? undefined : `--${foreign} does not go with deployments ${action}`;
}

function problemOfWait(
  action: DeploymentsAction,
  flags: ReadonlySet<string>,
  values: Words['values'],
): string | undefined {
  if (action === 'wait') return undefined;
  if (values.has('timeout') && !flags.has('wait')) return '--timeout goes with --wait';
  if (action !== 'upload' || flags.has('deploy')) return undefined;
  return flags.has('wait') || values.has('config') ? 'upload: --wait and --config go with --deploy' : undefined;
}

function placeOf(words: Words): ControlPlanePlace | string {
  const address = lastOf(words, 'url');
  const url = webAddress(address);
  if (address !== undefined && url === undefined) return 'expected --url to be an http or https address';
  const spelling: Record<string, string> = {};
  for (const [ours, theirs] of (words.values.get('spelling') ?? []).map(pairOf)) {
    if (ours === '' || !theirs) return 'expected --spelling to be like git_host=…';
    spelling[ours] = theirs;
  }
  return { url, spelling };
}

/** `name=value`; undefined where there is no `=`. */
export function pairOf(text: string): readonly [name: string, value: string | undefined] {
  const at = text.indexOf('=');
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** A whole number and its unit; 'none' for what is no time, and for none at all. */
export function durationMs(text: string | undefined): number | 'none' | undefined {
  if (text === undefined) return undefined;
  const [, count = '', unit = ''] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  return Number(count) > 0 ? Number(count) * (UNITS_MS[unit] ?? 0) : 'none';
}

function countOf(text: string | undefined): number | undefined {
  if (text === undefined) return LIMIT;
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= LIMIT_MAX ? count : undefined;
}

function mistake(message: string): Parsed {
  return { kind: 'mistake', message, topic: 'deployments' };
}
