import { resolve } from 'node:path';
import type { Dispatcher } from 'undici';
import { diagnostics, LEVELS, type Log, type LogLevel } from '../base/diagnostics.ts';
import { type EnvironmentName, env, langsmithEnv } from '../base/env.ts';
import { DELAY_MAX_MS, defaultLimits, type Limits } from '../base/limits.ts';
import { type Check, type Checks, isObject, type OptionMistake, validOptions, wholeFrom } from '../base/options.ts';
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

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const TEXT: Check = ['text', isText];
const FUNCTION: Check = ['a function', (value) => typeof value === 'function'];
/** The option is checked where it is used. */
const LATER: Check = ['valid', () => true];

const DURABILITIES: readonly unknown[] = ['memory', 'spill', 'write-ahead'] satisfies Durability[];

const CHECKS: Checks<ConfigureOptions> = {
  endpoint: LATER,
  apiKey: LATER,
  workspaceId: LATER,
  project: TEXT,
  projectId: TEXT,
  tracing: LATER,
  sampleRate: ['a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1],
  sampler: FUNCTION,
  hideInputs: LATER,
  hideOutputs: LATER,
  redact: LATER,
  allowInsecure: LATER,
  durability: [DURABILITIES.join(', '), (value) => DURABILITIES.includes(value)],
  spoolDir: ['a folder', isText],
  syncEveryMs: ['a positive whole number of milliseconds', wholeFrom(1, DELAY_MAX_MS)[1]],
  limits: LATER,
  headers: LATER,
  dispatcher: ['an undici dispatcher', (value) => typeof (value as Partial<Dispatcher> | null)?.request === 'function'],
  onDrop: FUNCTION,
  handleSignals: LATER,
  log: [
    'silent, error, warn, debug or a function',
    (value) => typeof value === 'function' || LEVELS.includes(value as LogLevel),
  ],
};

/**
 * Options, else environment, else defaults. Undefined when tracing is off. An exporter that is not for the whole process
 * leaves the log as it is, unless its options name one.
 */
export function resolveSettings(given: ConfigureOptions | undefined, isForProcess = true): Settings | undefined {
  const mistakes: OptionMistake[] = [];
  const copy = isObject(given) ? { ...given } : given;
  const options = validOptions(copy === undefined ? {} : copy, CHECKS, (mistake) => mistakes.push(mistake));
  applyLog(options.log, isForProcess);
  const hiding: Hiding = {};
  for (const mistake of mistakes) Object.assign(hiding, reportMistake(mistake, copy ?? {}));
  const limits = limitsOf(options.limits);
  const capture = { ...captureOf(options, limits), ...hiding };
  const isWanted = flag('tracing', options.tracing, ['RUNSPAN_TRACING'], true);
  const service = isWanted ? serviceOf(options, isForProcess) : undefined;
  if (service === undefined || !isRuntimeSupported()) return undefined;
  const { onDrop, dispatcher } = options;
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

/** Reports an option. If an unknown option hides payloads in another library, returns the payloads to hide here as well. */
function reportMistake({ name, value, check }: OptionMistake, options: object): Hiding | undefined {
  if (name === undefined) {
    complain(`expected the options to be an object, got ${value === null ? 'null' : typeof value}`);
    return undefined;
  }
  if (check !== undefined) {
    complain(`expected \`${name}\` to be ${check[0]}; the default is used`);
    return undefined;
  }
  const foreign = foreignOption(name, options, (known) => Object.hasOwn(CHECKS, known));
  if (foreign === undefined) complain(`unknown option \`${name}\`; left out`);
  else complain(`unknown option \`${name}\`${foreign.effect}; use \`${foreign.instead}\``);
  return foreign?.hiding;
}

/** Returns the value of a variable, or undefined if it is unset or invalid. */
function fromEnvironment<Value>(
  variable: EnvironmentName,
  [expected, holds]: Check,
  read: (text: string) => unknown = (text) => text,
): Value | undefined {
  const text = env(variable);
  if (text === undefined) return undefined;
  const value = read(text);
  if (holds(value)) return value as Value;
  complain(`expected \`${variable}\` to be ${expected}; the default is used`);
  return undefined;
}

/** Options, else environment, else defaults. */
export function durabilityOf(options: ConfigureOptions): Pick<Settings, 'durability' | 'spoolDir' | 'syncEveryMs'> {
  const { durability, spoolDir, syncEveryMs } = options;
  return {
    durability: durability ?? fromEnvironment<Durability>('RUNSPAN_DURABILITY', CHECKS.durability) ?? 'memory',
    spoolDir: resolve(spoolDir ?? env('RUNSPAN_SPOOL_DIR') ?? defaultSpoolDir()),
    syncEveryMs,
  };
}

function applyLog(option: Log | undefined, isForProcess: boolean): void {
  if (option === undefined && !isForProcess && diagnostics.isLogSet) return;
  // An invalid variable is reported even if it is not used.
  const fromVariable = fromEnvironment<LogLevel>('RUNSPAN_LOG', CHECKS.log);
  diagnostics.setLog(option ?? fromVariable ?? 'warn');
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
function projectOf({ project, projectId }: ConfigureOptions): Project {
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

function samplingOf({ sampleRate, sampler }: ConfigureOptions): SamplingDecision | undefined {
  const variable = SAMPLE_RATES.find((name) => env(name) !== undefined);
  const rate = sampleRate ?? (variable && fromEnvironment<number>(variable, CHECKS.sampleRate, Number));
  return samplingDecision(rate ?? 1, sampler);
}

const LIMIT_CHECKS = Object.fromEntries(
  Object.keys(defaultLimits).map((name) => {
    const least = name === 'startDelayMs' ? 0 : 1;
    const [, holds] = wholeFrom(least, name.endsWith('Ms') ? DELAY_MAX_MS : Number.MAX_SAFE_INTEGER);
    return [name, [`a whole number from ${least}`, holds]];
  }),
) as unknown as Checks<Limits>;

function limitsOf(given: unknown = {}): Limits {
  const [, isDelay] = LIMIT_CHECKS.startDelayMs;
  // `runspan dev` sets it for the program that it starts.
  const delayMs = fromEnvironment<number>(
    'RUNSPAN_START_DELAY_MS',
    ['a whole number of milliseconds', isDelay],
    Number,
  );
  const limits = validOptions(given, LIMIT_CHECKS, ({ name, value, check }) => {
    if (name === undefined) complain('expected `limits` to be an object; the defaults are used');
    else if (check === undefined) complain(`unknown limit \`${name}\`; left out`);
    else complain(`expected limit \`${name}\` to be ${check[0]}, got ${shown(value)}; the default is used`);
  });
  return { ...defaultLimits, ...(delayMs !== undefined && { startDelayMs: delayMs }), ...limits };
}
