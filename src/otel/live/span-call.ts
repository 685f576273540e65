import { guard } from '../../base/guard.ts';
import { parseFlag } from '../../config/checker.ts';
import { env } from '../../config/environment.ts';
import { defined, parsedJson } from '../../payload/fields.ts';
import { clearTimer, DELAY_MAX_MS, setTimer } from '../../platform/timers.ts';
import { callsOfSink, RecordedCall } from '../../run/calls/calls.ts';
import { isCallType } from '../../run/calls/same-call.ts';
import type { RunContext, RunOwner } from '../../run/context/context.ts';
import { type Hiding, hidingIf } from '../../run/run-options.ts';
import type { RunSink } from '../../run/sink.ts';
import { type Attributes, hasNoFields, text } from '../conventions/values.ts';
import { AttributeReader } from '../mapping/attributes.ts';
import type { MappedFields } from '../mapping/mapped-fields.ts';
import { messagesOfEvents } from '../mapping/message-events.ts';
import type { RowIndex } from '../mapping/row-index.ts';
import { scopeOf } from '../mapping/span-identity.ts';
import { OPERATION, runTypeOf } from '../mapping/span-to-run.ts';
import type { SpanLike } from '../span-like.ts';
import { unwatchEnd, watchForEnd } from './flushing.ts';

const TOOL_NAMES: readonly string[] = ['gen_ai.tool.name', 'ai.toolCall.name', 'tool.name', 'traceloop.entity.name'];

const isHidden = (part: 'INPUT' | 'OUTPUT'): boolean =>
  (['S', '_MESSAGES', '_TEXT'] as const).some((end) => parseFlag(env(`OPENINFERENCE_HIDE_${part}${end}`)) === true);

const bothIf = (isRefused: boolean): Hiding | undefined => hidingIf(isRefused, isRefused);

/** What a source of spans was asked not to record, by the name of its scope. */
const OPT_OUTS: readonly (readonly [scopes: RegExp, refused: () => Hiding | undefined])[] = [
  [/^@arizeai\/openinference-/, () => hidingIf(isHidden('INPUT'), isHidden('OUTPUT'))],
  [/^@traceloop\//, () => bothIf(parseFlag(env('TRACELOOP_TRACE_CONTENT')) === false)],
  [
    /^com\.anthropic\.sdk\b/,
    () => bothIf((env('ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE') ?? 'content').toLowerCase() !== 'content'),
  ],
];

/** Attributes of the GenAI conventions, whose variable turns content off for all sources. */
const GEN_AI: readonly string[] = ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.system'];

function isGenAiRefused(): boolean {
  const captured = env('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT')?.toLowerCase();
  return parseFlag(captured) === false || captured === 'no_content';
}

interface Refusal {
  readonly own: Hiding | undefined;
  readonly isGenAiRefused: boolean;
}

/** What each scope must not record, because variables are slow to read. */
const refusals = new WeakMap<object, Refusal>();

function refusalOf(span: SpanLike): Refusal | undefined {
  const scope = scopeOf(span);
  const known = scope && refusals.get(scope);
  if (known !== undefined || scope === undefined) return known;
  const [, refused] = OPT_OUTS.find(([scopes]) => scopes.test(scope.name)) ?? [];
  const refusal = { own: refused?.(), isGenAiRefused: isGenAiRefused() };
  refusals.set(scope, refusal);
  return refusal;
}

/** Returns what the user has asked the source of a span not to record. Undefined if there is no such request. */
export function refusedContent(span: SpanLike): Hiding | undefined {
  const refusal = refusalOf(span);
  const isRefused = refusal?.isGenAiRefused === true && GEN_AI.some((key) => span.attributes[key] !== undefined);
  return bothIf(isRefused) ?? refusal?.own;
}

/** Returns whether attributes that a span gets after its start may tell that it must not record content. */
export function mayRefuseLater(span: SpanLike): boolean {
  return refusalOf(span)?.isGenAiRefused === true;
}

/** Returns the run type of the call that a span records. Undefined if its attributes describe none. */
export function callTypeOf({ attributes }: SpanLike, index: RowIndex): string | undefined {
  const type = hasNoFields(attributes) ? undefined : guard(OPERATION, () => runTypeOf(attributes, index));
  return isCallType(type) ? type : undefined;
}

function toolNameOf({ attributes, name }: SpanLike): string {
  return TOOL_NAMES.map((key) => text(attributes[key])).find((found) => found !== undefined) ?? name;
}

/** Returns the inputs that a span and its log records contain, also if they are not recorded. */
export function inputsIn(span: SpanLike, logged: Attributes | undefined, index: RowIndex): unknown {
  const { attributes } = messagesOfEvents(span.events) ?? {};
  const reader = new AttributeReader({ ...logged, ...attributes, ...defined(span.attributes) }, index, undefined);
  const { inputs } = reader.read((group) => group !== 'inputs');
  return inputs && (inputs.text === undefined ? inputs.fields : parsedJson(inputs.text));
}

/** The run of a span that may record a call. */
interface CallingRun {
  readonly sink: RunSink;
  readonly source: string;
  readonly context: RunContext;
  readonly parentRunId: string | undefined;
  inputsIn(span?: SpanLike): unknown;
}

/** The record of a call of a span. Only at the end of the span is it certain whether it records one. */
export class SpanCall {
  readonly #run: CallingRun;
  /** Undefined if the span is not known to record a call. */
  #call: RecordedCall | undefined;
  /** Whether the open span may turn out to record a call, because some instrumentations set attributes after the start. */
  #isUndecided = false;
  /** The number of open records of calls inside the span that other sources have started. */
  #openInside = 0;
  #endLate: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(run: CallingRun) {
    this.#run = run;
  }

  start(type: string | undefined, name: string, above: RunOwner | undefined): void {
    const calls = callsOfSink(this.#run.sink);
    if (type === undefined) {
      this.#isUndecided = calls.startUndecided(this.#run.source);
      return;
    }
    this.#call = this.#callOf(type, name);
    calls.start(this.#call);
    above?.callStarted?.(this.#call);
  }

  startedInside({ source }: RecordedCall): void {
    if (source === this.#run.source) return;
    this.#openInside++;
    this.#stopWaiting();
  }

  /** Returns whether a call of another source has ended, and no other one is open inside the span. */
  endedInside({ source }: RecordedCall): boolean {
    return source !== this.#run.source && --this.#openInside <= 0;
  }

  /** Whether the span may record the same call. A call with another request says nothing about that of the span. */
  mayBeSame({ key }: RecordedCall): boolean {
    return key === undefined || (this.#call?.readKey() ?? key) === key;
  }

  /** Calls `end` after `idleMs`, or when the process is about to end, unless the span ends or a call starts inside. */
  awaitEnd(idleMs: number, end: () => void): void {
    this.#stopWaiting();
    this.#endLate = end;
    this.#timer = setTimer(end, Math.min(DELAY_MAX_MS, idleMs)).unref();
    watchForEnd(end);
  }

  #stopWaiting(): void {
    if (this.#endLate === undefined) return;
    clearTimer(this.#timer);
    unwatchEnd(this.#endLate);
    this.#endLate = undefined;
  }

  /** Returns the record of the ended span's call, which has not ended yet. `startSequence` is that of the span. */
  at(span: SpanLike, fields: MappedFields, startSequence: number): RecordedCall | undefined {
    const { runType, name, model, responseId } = fields;
    if (!isCallType(runType)) return undefined;
    let call = this.#call;
    if (call?.type === runType) {
      this.#call = undefined;
    } else {
      call = this.#callOf(runType, name, span);
      call.isLate = true;
      call.isUndecided = this.#isUndecided;
      this.#isUndecided = false;
    }
    call.startSequence = startSequence;
    if (runType === 'tool') call.name = toolNameOf(span);
    call.model = model;
    call.responseId = responseId;
    return call;
  }

  /** Called when the span has ended. What `at` has returned does not change. */
  leave(): void {
    const { sink, source } = this.#run;
    this.#stopWaiting();
    if (this.#call !== undefined) callsOfSink(sink).leave(this.#call);
    if (this.#isUndecided) callsOfSink(sink).endUndecided(source);
    this.#call = undefined;
    this.#isUndecided = false;
  }

  #callOf(type: string, name: string, span?: SpanLike): RecordedCall {
    const { source, context, parentRunId } = this.#run;
    const { id = '', traceId = '', dottedOrder = '' } = context;
    const run = { id, traceId, dottedOrder, parentRunId, name, inputs: undefined };
    return new RecordedCall(run, type, { source, inputs: () => this.#run.inputsIn(span) });
  }
}
