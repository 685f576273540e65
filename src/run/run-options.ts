import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreErrors } from '../base/guard.ts';
import { nearWord } from '../base/near.ts';
import { cut } from '../base/text.ts';
import { type Check, type Checks, FUNCTION, reportedOptions, TRUE_OR_FALSE, validOptions } from '../config/checker.ts';
import type { Hiding } from '../config/foreign-options.ts';
import { defined, definedOrNone } from '../payload/fields.ts';
import { DELAY_MAX_MS } from '../platform/timers.ts';
import type { Project } from './encoded-run.ts';
import { type Fields, TAGS_MAX } from './fields.ts';
import type { RunChanges, RunHooks } from './hooks.ts';
import { isRunId } from './ids.ts';
import type { RunType } from './record.ts';
import { type CapturePolicy, type FlushLimit, preloadDelivery, type RunSink } from './sink.ts';
import { type Timestamp, timestampUs } from './time.ts';

/** Fields that runs record. Nested runs inherit all fields. */
export interface ContextFields extends ThreadOptions {
  /** Tags to add to the runs. A list of more than 1,000 tags is ignored. */
  tags?: readonly string[] | undefined;
  /** Metadata to add to the runs. */
  metadata?: Fields | undefined;
}

export type { Hiding };

export interface Form extends Hiding {
  /** Encodes BigInts and cycles as LangSmith does. */
  isLangSmith?: true;
}

export function captureFor({ hideInputs, hideOutputs, isLangSmith }: Form, capture: CapturePolicy): CapturePolicy {
  if ((hideInputs ?? hideOutputs ?? isLangSmith) === undefined) return capture;
  return {
    ...capture,
    hideInputs: hideInputs ?? capture.hideInputs,
    hideOutputs: hideOutputs ?? capture.hideOutputs,
    payload: isLangSmith ? { ...capture.payload, isLangSmith } : capture.payload,
  };
}

/** Returns what at least one of two hides. Undefined if neither hides anything. */
export function hiddenByEither(one: Hiding | undefined, other: Hiding | undefined): Hiding | undefined {
  return one === undefined || other === undefined ? (one ?? other) : { ...one, ...other };
}

/** Returns what is hidden. Undefined if nothing is. */
export function hidingIf(hideInputs: boolean, hideOutputs: boolean): Hiding | undefined {
  return definedOrNone({ hideInputs: hideInputs || undefined, hideOutputs: hideOutputs || undefined }) as Hiding;
}

export interface StartOptions extends Omit<RunOptions, 'inputs' | 'startTime'>, Form {
  /** The start time in microseconds, or undefined if the run starts now. */
  startUs?: number;
  /** Payloads that neither the run nor the calls below it record, because the source was asked not to record them. */
  hiding?: Hiding | undefined;
  /** Name of the integration, if the run records a call to a model or a tool. */
  source?: string;
}

/** Options that identify the conversation and the user of runs. Nested runs inherit both. */
export interface ThreadOptions {
  /**
   * Id of the conversation, recorded as `thread_id` in the metadata. All traces of a conversation have the same
   * `threadId`. Takes precedence over `metadata.thread_id`.
   */
  threadId?: string | undefined;
  /** Id of the user, recorded as `user_id` in the metadata. Takes precedence over `metadata.user_id`. */
  userId?: string | undefined;
}

/** Options of a run. Only `name` is required. */
export interface RunOptions extends RunHooks, ThreadOptions {
  /** The name of the run. */
  name: string;
  /** @default 'chain' */
  runType?: RunType;
  /**
   * Tags of the run. A run keeps at most 1,000 tags, including inherited tags. A list of more than 1,000 tags is
   * ignored.
   */
  tags?: readonly string[];
  /** Metadata of the run. A run keeps at most 10,000 metadata keys, including inherited keys. */
  metadata?: Fields;
  /**
   * Project in which the run is recorded: its name, or `{ id }`. Nested runs inherit the project.
   * @default the project of the parent run, or of the exporter if there is no parent
   */
  project?: string | { readonly id: string } | undefined;
  /**
   * A UUID to use as the run id instead of a generated one. Use `runIdFrom` to derive a UUID from your own id. Use each
   * id for one run only. If two runs have the same id, the service replaces the first run or refuses the second, which is
   * then dropped as `repeated`.
   */
  id?: string;
  /** The inputs to record. Values are copied immediately. @default no inputs */
  inputs?: Fields;
  /**
   * Start time of an operation that has already started. If `startTime` is before the parent's start time, the parent's
   * start time is used.
   * @default now
   */
  startTime?: Timestamp;
  /** UUID of the dataset example that this run evaluates. Nested runs do not inherit the UUID. */
  referenceExampleId?: string;
  /** Starts a new trace, even if there is a current run. @default false */
  root?: boolean;
  /**
   * The exporter that sends the run and its nested runs.
   * @default the parent run's exporter, or the configured exporter if there is no parent
   */
  exporter?: RunSink;
}

/**
 * Options of the functions that trace an SDK, such as `wrapOpenAI`, and of the adapters for LangChain and Mastra. Every
 * option is optional, and applies to all runs of the wrapper. Unknown and invalid options are logged and ignored.
 */
export interface WrapOptions extends ThreadOptions, Partial<Pick<RunOptions, 'tags' | 'project' | 'exporter'>> {
  /**
   * Name of the outermost run of each call, for example of `generateText`, of a query, or of a model call outside of
   * `runTools`. The runs of model calls and tools below it keep their names.
   */
  name?: string;
  /** Metadata to add. Overrides recorded metadata. For example, `{ ls_provider: 'ollama' }` sets the provider. */
  metadata?: Fields;
  /** Set to `true` to record no inputs. Invalid values count as `true`. `false` shows nothing that `configure` hides. */
  hideInputs?: boolean;
  /** Set to `true` to record no outputs. Otherwise like `hideInputs`. */
  hideOutputs?: boolean;
  /**
   * Set to `false` to record nothing. A `wrap…` function then returns its argument unchanged, whose calls
   * `runspan/register` records like those of any other client.
   * @default true
   */
  enabled?: boolean;
}

/** The checked options of a wrapper. */
export type CallOptions = Partial<Pick<StartOptions, 'name' | keyof typeof sharedChecks | 'hiding'>>;

const text: Check = ['a non-empty string', (value) => typeof value === 'string' && value !== ''];
const object: Check = ['an object', (value) => typeof value === 'object' && value !== null];
const time: Check = [
  'a Date, milliseconds since 1970 or an ISO 8601 string, between 1970 and 2255',
  (value) => timestampUs(value) !== undefined,
];

export const contextChecks: Checks<ContextFields> = {
  threadId: text,
  userId: text,
  tags: [`a list of at most ${TAGS_MAX} strings`, areTags],
  metadata: object,
};

export const projectCheck: Check = [
  "a project's name, or an object with its `id`",
  (value) => text[1](value) || (object[1](value) && text[1]((value as { id?: unknown }).id)),
];

/** Copies an object with an id, because the application may change the object later. */
export function copiedProject(project: Project | undefined): Project | undefined {
  return typeof project === 'object' ? { id: project.id } : project;
}

/** Checks for options that apply to several runs, for example to all runs from one client. */
export const sharedChecks: Checks<ContextFields & Pick<RunOptions, 'project' | 'exporter'>> = {
  ...contextChecks,
  project: projectCheck,
  exporter: ['the result of createExporter()', isSink],
};

/**
 * Checks for the options that every function for starting runs accepts. Excludes `inputs`, because its type differs
 * between the functions. Excludes `startTime`, because a traced function starts when it is called.
 */
export const commonChecks: Readonly<Record<Exclude<keyof RunOptions, 'inputs' | 'startTime'>, Check>> = {
  ...sharedChecks,
  name: text,
  runType: text,
  id: ['a UUID, or the result of runIdFrom(key)', isUuid],
  referenceExampleId: ['a UUID', isUuid],
  onStart: FUNCTION,
  onEnd: FUNCTION,
  root: TRUE_OR_FALSE,
};

const wrapChecks: Checks<WrapOptions> = {
  ...sharedChecks,
  name: text,
  hideInputs: TRUE_OR_FALSE,
  hideOutputs: TRUE_OR_FALSE,
  enabled: TRUE_OR_FALSE,
};

export const runOptionChecks: Checks<RunOptions> = { ...commonChecks, inputs: object, startTime: time };

/** The options that `Run.end` and `Run.fail` accept. */
export interface EndOptions {
  /**
   * End time of an operation that has already ended. If `endTime` is before the start time, the start time is used.
   * @default now
   */
  endTime?: Timestamp;
}

export const endChecks: Checks<EndOptions> = { endTime: time };

export const changeChecks: Checks<RunChanges> = {
  name: runOptionChecks.name,
  tags: runOptionChecks.tags,
  metadata: runOptionChecks.metadata,
  inputs: runOptionChecks.inputs,
  outputs: ['anything', () => true],
  usage: runOptionChecks.metadata,
};

/**
 * Returns the valid options. Invalid options are ignored and logged once per function, named by `place`. Mistakes in
 * tracing options must not stop the application.
 */
export function usableOptions<Options extends object>(
  place: string,
  given: unknown,
  checks: Checks<Options>,
): Partial<Options> & Hiding {
  if (given === undefined) return {};
  const report = (line: string, name?: string): void => {
    // The key without a name differs from `place`, because an earlier warning with the key `place` would suppress this one.
    const once = name === undefined ? `${place} options` : `${place}.${name}`;
    diagnostics.warnOnce(once, `${place}: ${line}.`);
  };
  const usable = (guard(place, () => reportedOptions(given, checks, report)) ?? {}) as Partial<Options> &
    Hiding &
    ContextFields &
    Pick<RunOptions, 'project'>;
  if (usable.project !== undefined) usable.project = guard('project', () => copiedProject(usable.project));
  const { runType = '' } = usable as { runType?: string };
  const meant = meantType(runType);
  if (meant !== undefined) {
    report(`the run type "${cut(runType, 50)}" is recorded as it is, but "${meant}" is probably meant`, 'runType');
  }
  return withIdsInMetadata(usable);
}

/** Checks the options of a wrapper, which is named by `place`. Returns undefined if the wrapper must not trace. */
export function wrapOptions(place: string, given: unknown): CallOptions | undefined {
  const { enabled, hideInputs, hideOutputs, ...others } = usableOptions<WrapOptions>(place, given, wrapChecks);
  if (enabled === false) return undefined;
  preloadDelivery();
  return { ...others, hiding: hidingIf(hideInputs === true, hideOutputs === true) };
}

const TYPES: readonly string[] = ['chain', 'llm', 'tool', 'retriever', 'embedding', 'prompt', 'parser'];

/** What other libraries call an `llm` run. */
const LLM: readonly string[] = ['model', 'generation'];

/** Returns the type that a misspelt one probably stands for. Every other text is a type of its own. */
function meantType(runType: string): string | undefined {
  if (TYPES.includes(runType)) return undefined;
  const near = LLM.includes(runType) ? runType : nearWord(runType, [...TYPES, ...LLM]);
  return near !== undefined && LLM.includes(near) ? 'llm' : near;
}

/** Moves the ids of the conversation and the user to the metadata, where services expect them. */
function withIdsInMetadata<Options extends ContextFields>(options: Options): Options {
  const { threadId, userId } = options;
  if (threadId === undefined && userId === undefined) return options;
  delete options.threadId;
  delete options.userId;
  const ids = defined({ thread_id: threadId, user_id: userId });
  options.metadata = guard('metadata', () => ({ ...options.metadata, ...ids })) ?? ids;
  return options;
}

const flushChecks: Checks<FlushLimit> = {
  timeoutMs: ['a number from 0', (value) => typeof value === 'number' && value >= 0],
};

export function flushLimitMs(place: string, limit: unknown, defaultMs: number): number {
  if (limit === undefined) return defaultMs;
  // The warning omits the argument, because `call().then(flush)` passes application data to `flush`.
  const mistake = `${place}: expected { timeoutMs } with a number from 0; anything else is ignored.`;
  const report = (): void => diagnostics.warnOnce(`${place} limit`, mistake);
  const given = guard(place, () => validOptions(limit, flushChecks, report));
  return Math.min(given?.timeoutMs ?? defaultMs, DELAY_MAX_MS);
}

function isUuid(value: unknown): boolean {
  return typeof value === 'string' && isRunId(value.toLowerCase());
}

function areTags(value: unknown): boolean {
  // Long lists are rejected first, because checking every tag could block the event loop.
  return Array.isArray(value) && value.length <= TAGS_MAX && value.every((tag) => typeof tag === 'string');
}

export function isSink(value: unknown): boolean {
  const hasMembers = ({ start, end, capture }: Partial<RunSink>): boolean =>
    typeof start === 'function' && typeof end === 'function' && typeof capture === 'object' && capture !== null;
  return ignoreErrors(() => hasMembers((value ?? {}) as Partial<RunSink>)) ?? false;
}
