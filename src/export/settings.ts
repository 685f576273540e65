import { resolve } from 'node:path';
import type { Dispatcher } from 'undici';
import { diagnostics, LEVELS, type Log, type LogLevel } from '../base/diagnostics.ts';
import { type EnvironmentName, env, langsmithEnv } from '../base/env.ts';
import { DELAY_MAX_MS, defaultLimits, type Limits } from '../base/limits.ts';
import { shown } from '../base/text.ts';
import { environmentProxies, type Proxies } from '../http/connections.ts';
import { payloadRules } from '../payload/limits.ts';
import { redactionOf } from '../payload/redact.ts';
import type { Project } from '../run/encoded-run.ts';
import { foreignOption, type Hiding } from '../run/run-options.ts';
import { samplingDecision } from '../run/sampling.ts';
import type { CapturePolicy, SamplingDecision } from '../run/sink.ts';
import type { ConfigureOptions, Durability } from './configure-options.ts';
import type { OnDrop } from './drop-notice.ts';
import { complain, flag, type Service, serviceOf } from './service-settings.ts';
import { defaultSpoolDir } from './spool/fs.ts';

const DURABILITIES: readonly string[] = ['memory', 'spill', 'write-ahead'] satisfies Durability[];

/** What an exporter needs to know, checked. */
export interface Settings extends Service {
  readonly durability: Durability;
  readonly spoolDir: string;
  readonly syncEveryMs: number | undefined;
  /** Hash of the destination whose folder the spool uses, if it is not the destination of these settings. */
  readonly spoolDestination?: string;
  readonly limits: Limits;
  readonly capture: CapturePolicy;
  readonly dispatcher: Dispatcher | undefined;
  readonly proxies: Proxies | undefined;
  readonly onDrop: OnDrop | undefined;
  readonly handleSignals: boolean;
}

const KNOWN: ReadonlySet<string> = new Set<keyof ConfigureOptions>([
  'endpoint',
  'apiKey',
  'workspaceId',
  'project',
  'projectId',
  'tracing',
  'sampleRate',
  'sampler',
  'hideInputs',
  'hideOutputs',
  'redact',
  'allowInsecure',
  'durability',
  'spoolDir',
  'syncEveryMs',
  'limits',
  'headers',
  'dispatcher',
  'onDrop',
  'handleSignals',
  'log',
]);

/**
 * Options, else environment, else defaults. Undefined when tracing is off. An exporter that is not for the whole process
 * leaves the log as it is, unless its options name one.
 */
export function resolveSettings(given: ConfigureOptions | undefined, isForProcess = true): Settings | undefined {
  const options: ConfigureOptions = isObject(given) ? { ...given } : {};
  applyLog(options.log, isForProcess);
  if (!isObject(given) && given !== undefined)
    complain(`expected the options to be an object, got ${given === null ? 'null' : typeof given}`);
  const hiding: Hiding = {};
  for (const key of Object.keys(options)) {
    if (!KNOWN.has(key)) Object.assign(hiding, unknownOption(key, options));
  }
  const limits = limitsOf(options.limits);
  const capture = { ...captureOf(options, limits), ...hiding };
  const isWanted = flag('tracing', options.tracing, ['RUNSPAN_TRACING'], true);
  const service = isWanted ? serviceOf(options, isForProcess) : undefined;
  if (service === undefined || !isRuntimeSupported()) return undefined;
  const onDrop = optional('onDrop', options.onDrop, 'a function', (value) => typeof value === 'function');
  const dispatcher = optional(
    'dispatcher',
    options.dispatcher,
    'an undici dispatcher',
    (value) => typeof value?.request === 'function',
  );
  const proxies = dispatcher === undefined ? environmentProxies() : undefined;
  const handleSignals = flag('handleSignals', options.handleSignals, [], false);
  return { ...service, ...durabilityOf(options), limits, capture, onDrop, dispatcher, proxies, handleSignals };
}

/** Whether the runtime has `eventLoopUtilization`. Without it, process exit cannot be handled. Bun 1.4 lacks it. */
function isRuntimeSupported(): boolean {
  if (typeof globalThis.performance?.eventLoopUtilization === 'function') return true;
  diagnostics.warnOnce(
    'runtime',
    'delivery is off: this runtime has no performance.eventLoopUtilization; use Node.js 20.19 or later',
  );
  return false;
}

/**
 * Reports an unknown option. If the option hides payloads in another library, returns the payloads to hide here as
 * well.
 */
function unknownOption(key: string, options: object): Hiding | undefined {
  const foreign = foreignOption(key, options, (name) => KNOWN.has(name));
  if (foreign === undefined) complain(`unknown option \`${key}\`; left out`);
  else complain(`unknown option \`${key}\`${foreign.effect}; use \`${foreign.instead}\``);
  return foreign?.hiding;
}

/** Options, else environment, else defaults. */
export function durabilityOf(options: ConfigureOptions): Pick<Settings, 'durability' | 'spoolDir' | 'syncEveryMs'> {
  const expected = DURABILITIES.join(', ');
  const isKnown = (value: string): boolean => DURABILITIES.includes(value);
  const durability =
    optional('durability', options.durability, expected, isKnown) ??
    optional('RUNSPAN_DURABILITY', env('RUNSPAN_DURABILITY') as Durability | undefined, expected, isKnown);
  const isFolder = (value: unknown): boolean => typeof value === 'string' && value !== '';
  const spoolDir = optional('spoolDir', options.spoolDir, 'a folder', isFolder) ?? env('RUNSPAN_SPOOL_DIR');
  const isInterval = (value: unknown): boolean =>
    Number.isInteger(value) && (value as number) > 0 && (value as number) <= DELAY_MAX_MS;
  const syncEveryMs = optional(
    'syncEveryMs',
    options.syncEveryMs,
    'a positive whole number of milliseconds',
    isInterval,
  );
  return {
    durability: durability ?? 'memory',
    spoolDir: resolve(spoolDir ?? defaultSpoolDir()),
    syncEveryMs,
  };
}

function applyLog(option: Log | undefined, isForProcess: boolean): void {
  const isLog = (value: unknown): boolean => typeof value === 'function' || LEVELS.includes(value as LogLevel);
  const expected = 'silent, error, warn, debug or a function';
  const log = optional('log', option, expected, isLog);
  if (log === undefined && !isForProcess && diagnostics.isLogSet) return;
  const fromEnvironment = optional('RUNSPAN_LOG', env('RUNSPAN_LOG') as LogLevel | undefined, expected, isLog);
  diagnostics.setLog(log ?? fromEnvironment ?? 'warn');
}

function captureOf(options: ConfigureOptions, limits: Limits): CapturePolicy {
  return {
    project: projectOf(options),
    hideInputs: flag('hideInputs', options.hideInputs, HIDE_INPUTS, false, true),
    hideOutputs: flag('hideOutputs', options.hideOutputs, HIDE_OUTPUTS, false, true),
    payload: payloadRules(limits, redactionOf('configure', options.redact)),
    attachmentBytes: limits.attachmentBytes,
    sampling: samplingOf(options),
    streamIdleMs: limits.streamIdleMs,
  };
}

/** Returns the project. Options take precedence over environment variables, and ids over names. */
function projectOf(options: ConfigureOptions): Project {
  const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
  const project = optional('project', options.project, 'text', isText);
  const projectId = optional('projectId', options.projectId, 'text', isText);
  if (project !== undefined && projectId !== undefined) {
    complain('`project` and `projectId` are both given; `projectId` is used');
  }
  if (projectId !== undefined) return { id: projectId };
  if (project !== undefined) return project;
  const id = env('RUNSPAN_PROJECT_ID');
  return id === undefined ? (env('RUNSPAN_PROJECT') ?? langsmithEnv('PROJECT') ?? 'default') : { id };
}

const HIDE_INPUTS = ['RUNSPAN_HIDE_INPUTS', 'LANGSMITH_HIDE_INPUTS', 'LANGCHAIN_HIDE_INPUTS'] as const;
const HIDE_OUTPUTS = ['RUNSPAN_HIDE_OUTPUTS', 'LANGSMITH_HIDE_OUTPUTS', 'LANGCHAIN_HIDE_OUTPUTS'] as const;
const SAMPLE_RATES: readonly EnvironmentName[] = [
  'RUNSPAN_SAMPLE_RATE',
  'LANGSMITH_TRACING_SAMPLING_RATE',
  'LANGCHAIN_TRACING_SAMPLING_RATE',
];

function samplingOf(options: ConfigureOptions): SamplingDecision | undefined {
  const isRate = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1;
  const expected = 'a number from 0 to 1';
  const variable = SAMPLE_RATES.find((name) => env(name) !== undefined);
  const rate =
    optional('sampleRate', options.sampleRate, expected, isRate) ??
    (variable && optional(variable, Number(env(variable)), expected, isRate));
  const sampler = optional('sampler', options.sampler, 'a function', (value) => typeof value === 'function');
  return samplingDecision(rate ?? 1, sampler);
}

function limitsOf(given: Partial<Limits> | undefined): Limits {
  const limits = { ...defaultLimits, startDelayMs: startDelayMs() };
  if (given !== undefined && !isObject(given)) complain('expected `limits` to be an object; the defaults are used');
  for (const [key, value] of Object.entries(isObject(given) ? given : {})) {
    if (value === undefined) continue;
    if (!Object.hasOwn(defaultLimits, key)) complain(`unknown limit \`${key}\`; left out`);
    else if (Number.isSafeInteger(value) && value >= leastOf(key) && (!key.endsWith('Ms') || value <= DELAY_MAX_MS)) {
      limits[key as keyof Limits] = value;
    } else {
      const least = leastOf(key);
      complain(
        `expected limit \`${key}\` to be a whole number from ${least}, got ${shown(value)}; the default is used`,
      );
    }
  }
  return limits;
}

/** Returns the least value of a limit. */
function leastOf(limit: string): number {
  return limit === 'startDelayMs' ? 0 : 1;
}

/** Returns the delay of the environment. `runspan dev` sets it for the program that it starts. */
function startDelayMs(): number {
  const variable = 'RUNSPAN_START_DELAY_MS';
  const text = env(variable);
  const isDelay = (ms: number): boolean => Number.isSafeInteger(ms) && ms >= 0 && ms <= DELAY_MAX_MS;
  const given = text === undefined ? undefined : Number(text);
  return optional(variable, given, 'a whole number of milliseconds', isDelay) ?? defaultLimits.startDelayMs;
}

/** An option if it is what is expected, else one line and nothing. */
function optional<Value>(
  name: string,
  value: Value | undefined,
  expected: string,
  holds: (value: Value) => boolean,
): Value | undefined {
  if (value === undefined || holds(value)) return value;
  complain(`expected \`${name}\` to be ${expected}; the default is used`);
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
