import type { Dispatcher } from 'undici';
import { diagnostics, LEVELS, type Log, type LogLevel } from '../base/diagnostics.ts';
import { shared } from '../base/shared.ts';
import type { OnDrop } from '../delivery/ledger.ts';
import { spoolFolder } from '../delivery/spool/fs.ts';
import { environmentProxies, type Proxies } from '../http/connections.ts';
import { definedOrNone } from '../payload/fields.ts';
import { type Redaction, redactionOf } from '../payload/redaction/redact.ts';
import { payloadRules } from '../payload/truncate.ts';
import { isPerRequest } from '../platform/node.ts';
import { DELAY_MAX_MS } from '../platform/timers.ts';
import type { Project } from '../run/encoded-run.ts';
import type { RunHooks } from '../run/hooks.ts';
import { copiedProject, projectCheck } from '../run/run-options.ts';
import { type KeepRule, keepCheck, keepRules } from '../run/sampling/keep.ts';
import { type Sampler, samplingChecks, samplingDecision } from '../run/sampling/sampling.ts';
import type { CapturePolicy, SamplingDecision } from '../run/sink.ts';
import {
  type Check,
  type Checks,
  FUNCTION,
  isLoopback,
  matcherOf,
  NAMES_TO_KEEP,
  reportedOptions,
  TEXT,
  TRUE_OR_FALSE,
  wholeFrom,
  withoutPrototype,
} from './checker.ts';
import { devEnv, env } from './environment.ts';
import type { Hiding } from './foreign-options.ts';
import { defaultLimits, defaultTuning, type Limits, type Tuning } from './limits.ts';
import { type OtlpSettings, otlpServiceOptions, otlpSettings, PROTOCOLS, type Protocol } from './otlp.ts';
import { type HeaderFields, type Service, serviceOf } from './service.ts';
import type { SettingName } from './settings.ts';
import { complain, flag, reportMisspelt, variableOf } from './variables.ts';

/**
 * Options of `configure` and `createExporter`. Each option takes precedence over the environment variable in its
 * description. Invalid options are logged and ignored.
 */
export interface ConfigureOptions extends RunHooks {
  /**
   * URL of the service, for example `http://127.0.0.1:4777`. Tracing is off if no endpoint is set. `RUNSPAN_ENDPOINT`
   */
  endpoint?: string;
  /**
   * How runs are sent. With `otlp` or `otlp-json`, each run is sent as an OpenTelemetry span when it ends, to any backend
   * or collector. The endpoint then names the route for spans, and `/v1/traces` is added to an endpoint without a path.
   * Without an endpoint, `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS` apply. `RUNSPAN_PROTOCOL`
   * @default 'runs'
   */
  protocol?: Protocol;
  /**
   * API key, sent to the endpoint as the `x-api-key` header. An empty key is not sent. If `apiKey` is a function, it is
   * called for each request and returns the key or a promise. Runs are kept and sent later if the function fails.
   * `RUNSPAN_API_KEY`
   */
  apiKey?: string | (() => string | Promise<string>);
  /** Workspace id. Required if the API key gives access to several workspaces. `RUNSPAN_WORKSPACE_ID` */
  workspaceId?: string;
  /**
   * Project in which runs are recorded: its name, or `{ id }`. The variable contains a name. `RUNSPAN_PROJECT`
   * @default 'default'
   */
  project?: string | { readonly id: string };
  /**
   * Set to `false` to turn tracing off. `RUNSPAN_TRACING`
   * @default true if an endpoint is set
   */
  tracing?: boolean;
  /**
   * Share of traces to record, from 0 to 1. Each trace is recorded completely or not at all. All processes record the
   * same traces, because the decision depends only on the trace id. `RUNSPAN_SAMPLE_RATE`
   * @default 1
   */
  sampleRate?: number;
  /**
   * Rules for traces to send although the sample rate drops them: `error`, `slow>10s`, or a function that returns true for
   * a trace. The runs of such a trace are held in memory until its first run in this process ends, or fails. At most
   * 10,000 runs and 16 MiB are held. Beyond this, the rules decide on the oldest trace. Hooks are called for held runs
   * too. The variable contains rules separated by commas. `RUNSPAN_KEEP`
   * @default []
   */
  keep?: readonly KeepRule[];
  /**
   * Function that decides whether to record a trace. Called with the trace's first run. If the function returns
   * undefined, `sampleRate` decides.
   */
  sampler?: Sampler;
  /**
   * Set to `true` to record no inputs. `RUNSPAN_HIDE_INPUTS`
   * @default false
   */
  hideInputs?: boolean;
  /**
   * Set to `true` to record no outputs. `RUNSPAN_HIDE_OUTPUTS`
   * @default false
   */
  hideOutputs?: boolean;
  /**
   * Names of attributes of spans that contain no content, in addition to those that runspan knows: `tenant`, or `app.*` for
   * all that begin with `app.`. While inputs or outputs are hidden, text and lists in other attributes are left out.
   * @default []
   */
  keepAttributes?: readonly string[];
  /**
   * Rules that mask values in each run. Create the rules with `redact`. If the rules are invalid, all payloads are
   * hidden.
   *
   * @default masks values under names such as `authorization` and `password`
   */
  redact?: Redaction;
  /**
   * Origins of your own services, for example `https://search.example`. With `runspan/register`, requests to these
   * origins get the headers `runspan-trace` and `traceparent`, so that the runs of both programs form one trace. MCP
   * clients send the same values in `_meta`. Scheme, host and port must be equal. Under `runspan dev`, requests to
   * localhost get the headers too. The variable contains origins separated by commas. `RUNSPAN_PROPAGATE_TO`
   * @default []
   */
  propagateTo?: readonly string[];
  /**
   * Set to `true` to send the API key and other credentials over plain HTTP. Plain HTTP to localhost is always allowed.
   * `RUNSPAN_ALLOW_INSECURE`
   * @default false
   */
  allowInsecure?: boolean;
  /**
   * Decides which undelivered runs survive the end of the process. See `docs/delivery.md`. If set to `memory`, no
   * undelivered runs survive. If set to `spill`, undelivered runs are written to disk when the process exits, during an
   * outage, or when the queue is half full. If set to `write-ahead`, each run is written to disk as soon as it starts
   * and ends, and survives even `kill -9`. `RUNSPAN_DURABILITY`
   * @default 'memory', or 'spill' with `runspan/register` on Node
   */
  durability?: Durability;
  /**
   * Folder for undelivered runs. Only the current user can read the folder. `RUNSPAN_SPOOL_DIR`
   * @default '.runspan/spool' in the home folder
   */
  spoolDir?: string;
  /** Limits for queues, batches, payloads, requests and delays. See `docs/configuration.md`. */
  limits?: Partial<Limits>;
  /**
   * Headers for every request, as an object, `Headers`, a `Map` or a list of pairs. If `headers` is a function, it is
   * called for each request and returns the headers or a promise. Credentials are sent over plain HTTP only to
   * localhost, unless `allowInsecure` is set.
   */
  headers?: HeaderFields | (() => HeaderFields | Promise<HeaderFields>);
  /** undici dispatcher for all requests, for example a `ProxyAgent`. */
  dispatcher?: Dispatcher;
  /**
   * Function that sends all requests, instead of undici or the global `fetch`. Has the signature of `fetch`. If it is
   * set, `dispatcher` and proxy settings have no effect.
   */
  fetch?: typeof globalThis.fetch;
  /** Function that is called for each dropped run. If the function throws, the first error is logged. */
  onDrop?: OnDrop;
  /**
   * Set to `true` to deliver queued runs on SIGTERM, SIGINT or SIGHUP before the process ends. Delivery takes at most
   * 2 seconds. A second signal ends the process immediately. Has no effect in worker threads, on Windows, or
   * if the application listens for the signal.
   *
   * @default false; for SIGTERM, true with `runspan/register` on Node
   */
  handleSignals?: boolean;
  /**
   * Log level or log function for the whole process. `RUNSPAN_LOG`
   * @default 'warn'
   */
  log?: Log;
}

/** Decides which undelivered runs survive the end of the process. */
export type Durability = 'memory' | 'spill' | 'write-ahead';

export interface Settings extends Service {
  readonly durability: Durability;
  /** Absolute path. Empty if `durability` is `memory`, which reads nothing from disk. */
  readonly spoolDir: string;
  /** Hash of the service and tenant whose runs on disk are delivered. Computed from these settings by default. */
  readonly spoolDestination?: string;
  /** Set if runs are sent as OpenTelemetry spans. */
  readonly otlp?: OtlpSettings | undefined;
  readonly limits: Limits & Tuning;
  readonly capture: CapturePolicy;
  /** Whether large requests are compressed, if the service accepts it. */
  readonly compress: boolean;
  readonly dispatcher: Dispatcher | undefined;
  readonly fetch: typeof globalThis.fetch | undefined;
  readonly proxies: Proxies | undefined;
  readonly onDrop: OnDrop | undefined;
  /** The signals at which runs are delivered before the process ends. */
  readonly signals: readonly NodeJS.Signals[];
}

/** Accepts any value. Used for options that are validated elsewhere. */
const LATER: Check = ['valid', () => true];

const DURABILITIES: readonly unknown[] = ['memory', 'spill', 'write-ahead'] satisfies Durability[];

const CHECKS: Checks<ConfigureOptions> = {
  endpoint: LATER,
  protocol: [PROTOCOLS.join(', '), (value) => PROTOCOLS.includes(value)],
  apiKey: LATER,
  workspaceId: LATER,
  project: projectCheck,
  tracing: LATER,
  ...samplingChecks,
  keep: keepCheck,
  hideInputs: LATER,
  hideOutputs: LATER,
  keepAttributes: NAMES_TO_KEEP,
  redact: LATER,
  propagateTo: [
    'a list of origins such as https://search.example',
    (value) => Array.isArray(value) && value.every((text) => originIn(text) !== undefined),
  ],
  allowInsecure: LATER,
  durability: [DURABILITIES.join(', '), (value) => DURABILITIES.includes(value)],
  spoolDir: ['a folder', TEXT[1]],
  limits: LATER,
  headers: LATER,
  dispatcher: ['an undici dispatcher', (value) => typeof (value as Partial<Dispatcher> | null)?.request === 'function'],
  fetch: FUNCTION,
  onDrop: FUNCTION,
  onStart: FUNCTION,
  onEnd: FUNCTION,
  handleSignals: TRUE_OR_FALSE,
  log: [
    'silent, error, warn, info, debug or a function',
    (value) => typeof value === 'function' || LEVELS.includes(value as LogLevel),
  ],
};

/**
 * Returns the settings, or undefined if tracing is off. Options take precedence over environment variables. If
 * `isForProcess` is false, environment variables do not change an existing `log` setting.
 */
export function resolveSettings(given: ConfigureOptions | undefined, isForProcess = true): Settings | undefined {
  // The lines are logged at the level that the option `log` sets.
  const mistakes: string[] = [];
  const report = (line: string, name = ''): void => {
    mistakes.push(Object.hasOwn(LIMIT_CHECKS, name) ? `${line}; use \`limits.${name}\`` : line);
  };
  const options = withoutPrototype(reportedOptions(given === undefined ? {} : given, CHECKS, report));
  applyLog(options.log, isForProcess);
  for (const line of mistakes) complain(line);
  if (isForProcess) reportMisspelt();
  const limits = limitsOf(options.limits);
  const capture = captureOf(options, limits);
  const isWanted = flag('tracing', options.tracing, true);
  const otlp = otlpSettings(options.protocol ?? fromEnvironment<Protocol>('protocol', CHECKS.protocol) ?? 'runs');
  const address = otlp === undefined ? options : otlpServiceOptions(options);
  const service = isWanted ? serviceOf(address, isForProcess, otlp === undefined) : undefined;
  if (service === undefined) return undefined;
  const { endpoints } = service;
  const { onDrop, dispatcher, fetch } = options;
  const proxies = dispatcher === undefined ? environmentProxies() : undefined;
  return {
    ...service,
    ...durabilityOf(options),
    otlp,
    limits,
    capture: endpoints === undefined ? capture : { ...capture, replication: { endpoints, options } },
    // Compression saves no time if the service runs on this machine.
    compress: !isLoopback(service.endpoint.hostname),
    onDrop,
    dispatcher,
    fetch,
    proxies,
    signals: signalsOf(options),
  };
}

function fromEnvironment<Value>(
  setting: SettingName,
  [expected, holds]: Check,
  read: (text: string) => unknown = (text) => text,
): Value | undefined {
  const variable = variableOf(setting);
  if (variable === undefined) return undefined;
  const value = read(env(variable) ?? '');
  if (holds(value)) return value as Value;
  complain(`expected \`${variable}\` to be ${expected}; the default is used`, setting);
  return undefined;
}

const defaults: Pick<Settings, 'durability' | 'signals'> = shared('defaults', () => ({
  durability: 'memory',
  signals: [],
}));

/** Sets what later exporters use if neither an option nor an environment variable is set. */
export function setDefaults(values: Pick<Settings, 'durability' | 'signals'>): void {
  Object.assign(defaults, values);
}

export const SIGNALS: Settings['signals'] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

function signalsOf({ handleSignals }: ConfigureOptions): Settings['signals'] {
  if (handleSignals === undefined) return defaults.signals;
  return handleSignals ? SIGNALS : [];
}

export function durabilityOf(options: ConfigureOptions): Pick<Settings, 'durability' | 'spoolDir'> {
  const { durability, spoolDir } = options;
  const wanted = durability ?? fromEnvironment<Durability>('durability', CHECKS.durability) ?? defaults.durability;
  const hasFiles = !isPerRequest && wanted !== 'memory';
  const folder = hasFiles ? spoolFolder(spoolDir ?? env('RUNSPAN_SPOOL_DIR')) : undefined;
  if (folder !== undefined) return { durability: wanted, spoolDir: folder };
  const reason = isPerRequest ? 'this runtime has no file system' : 'the working directory was deleted';
  if (wanted !== 'memory') complain(`${reason}, so \`durability\` is \`memory\``);
  return { durability: 'memory', spoolDir: '' };
}

function applyLog(option: Log | undefined, isForProcess: boolean): void {
  if (option === undefined && !isForProcess && diagnostics.isLogSet) return;
  // Reads the variable even if the option is set, so that an invalid value is always logged.
  const fromVariable = fromEnvironment<LogLevel>('log', CHECKS.log);
  diagnostics.setLog(option ?? fromVariable ?? 'warn');
}

function captureOf(options: ConfigureOptions, limits: Limits & Hiding): CapturePolicy {
  const payload = payloadRules(limits, redactionOf('configure', options.redact));
  return {
    project: projectOf(options),
    hideInputs: limits.hideInputs ?? flag('hideInputs', options.hideInputs, false, true),
    hideOutputs: limits.hideOutputs ?? flag('hideOutputs', options.hideOutputs, false, true),
    isKept: options.keepAttributes && matcherOf(options.keepAttributes),
    payload,
    attachmentBytes: limits.attachmentBytes,
    sampling: samplingOf(options),
    keep: keepRules(options.keep ?? fromEnvironment<KeepRule[]>('keep', CHECKS.keep, listIn) ?? []),
    propagateTo: propagateToOf(options),
    hooks: definedOrNone({ onStart: options.onStart, onEnd: options.onEnd }),
  };
}

/** Returns undefined if there is no origin, so that requests need not be compared. */
function propagateToOf({ propagateTo }: ConfigureOptions): ReadonlySet<string> | undefined {
  const given = propagateTo ?? fromEnvironment<string[]>('propagateTo', CHECKS.propagateTo, listIn) ?? [];
  return given.length === 0 ? undefined : new Set(given.flatMap((text) => originIn(text) ?? []));
}

function listIn(text: string): string[] {
  return text.split(',').map((item) => item.trim());
}

/** Returns the origin of a URL with the scheme http or https and nothing else. */
function originIn(text: unknown): string | undefined {
  if (typeof text !== 'string' || !URL.canParse(text)) return undefined;
  const { origin, href, protocol } = new URL(text);
  return href === `${origin}/` && /^https?:$/.test(protocol) ? origin : undefined;
}

function projectOf({ project }: ConfigureOptions): Project {
  const variable = variableOf('project');
  return copiedProject(project) ?? (variable && env(variable)) ?? 'default';
}

function samplingOf({ sampleRate, sampler }: ConfigureOptions): SamplingDecision | undefined {
  const rate = sampleRate ?? fromEnvironment<number>('sampleRate', CHECKS.sampleRate, Number);
  return samplingDecision(rate ?? 1, sampler);
}

const LIMIT_CHECKS = checksOf(defaultLimits);
const TUNING_CHECKS = checksOf(defaultTuning);

function checksOf<Numbers extends object>(defaults: Numbers): Checks<Numbers> {
  const checks = Object.keys(defaults).map((name) => {
    const least = name === 'startDelayMs' ? 0 : 1;
    return [name, wholeFrom(least, name.endsWith('Ms') ? DELAY_MAX_MS : undefined)];
  });
  return Object.fromEntries(checks) as unknown as Checks<Numbers>;
}

function limitsOf(given: unknown = {}): Limits & Tuning & Hiding {
  const { startDelayMs, limits: tuning = {} } = devEnv();
  const report = (line: string): void => complain(line);
  return withoutPrototype({
    ...defaultLimits,
    ...reportedOptions({ startDelayMs }, LIMIT_CHECKS, report, 'RUNSPAN_DEV.'),
    ...defaultTuning,
    ...reportedOptions(tuning, TUNING_CHECKS, report, 'RUNSPAN_DEV.limits.'),
    ...reportedOptions(given, LIMIT_CHECKS, report, 'limits.'),
  });
}
