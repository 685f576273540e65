import { firstLine } from '../../base/text.ts';
import { type Fields, fieldsOf, parsedJson, sumOfCounts, textOf, without } from '../../payload/fields.ts';
import type { Completion, RunContext } from '../../run/context.ts';
import type { EncodedRun } from '../../run/encoded-run.ts';
import { SOURCES } from '../../run/same-call.ts';
import type { CapturePolicy } from '../../run/sink.ts';

const USAGE = 'usage_metadata';
const END_REASON = 'end_reason';

/** Matches the errors of clients' timeouts, for example `client_timeout_error` and `Request timed out.` */
const TIMEOUT = /time[d_ -]*out/i;

/**
 * Completes the run of a span with what other sources record of the same call. Several records are attempts of the call,
 * one after the other.
 */
export class SpanCompletion implements Completion {
  readonly context: RunContext;
  readonly parentRunId: string | undefined;
  readonly capture: CapturePolicy;
  readonly #settled: () => void;
  /** The record that started last. */
  #last: EncodedRun | undefined;
  /** The record that last ended without an error. */
  #best: EncodedRun | undefined;
  #usage: Fields | undefined;
  /** The latest end of a record. */
  #endTime = '';
  readonly #sources = new Set<string>();
  #open = 0;

  /** Calls `settled` whenever no record is open any more. */
  constructor(
    { context, parentRunId }: Pick<Completion, 'context' | 'parentRunId'>,
    capture: CapturePolicy,
    settled: () => void,
  ) {
    this.context = context;
    this.parentRunId = parentRunId;
    this.capture = { ...capture, hooks: undefined };
    this.#settled = settled;
  }

  /** Whether no other source has recorded the call. */
  get isEmpty(): boolean {
    return this.#last === undefined;
  }

  /** Whether a record of the call has started and not ended. */
  get isOpen(): boolean {
    return this.#open > 0;
  }

  start(record: EncodedRun): boolean {
    this.#last = record;
    this.#open++;
    return true;
  }

  end(record: EncodedRun): void {
    this.#open--;
    if (record.error === undefined) this.#best = record;
    if (record.endTime !== undefined && record.endTime > this.#endTime) this.#endTime = record.endTime;
    const usage = usageOf(record);
    if (usage !== undefined) this.#usage = this.#usage === undefined ? usage : sumOfCounts(this.#usage, usage);
    for (const source of sourcesOf(record)) this.#sources.add(source);
    if (!this.isOpen) this.#settled();
  }

  /**
   * Adds to an ended run what its span lacks. Content comes from the last attempt that succeeded. If the span has no
   * usage, the usage of all attempts is added up. `hasInputs` tells whether the span has inputs. `isLate` tells whether
   * the span has ended before the last attempt, and thus does not know the attempt's end.
   */
  complete(run: EncodedRun, source: string | undefined, hasInputs: boolean, isLate: boolean): void {
    const last = this.#last;
    if (last === undefined) return;
    const best = this.#best ?? last;
    const usage = usageOf(run) ?? this.#usage;
    const hasOutputs = hasContent(run.outputs);
    if (!hasInputs) run.inputs = best.inputs;
    if (!hasOutputs || usageOf(run) === undefined) {
      const content = without(fieldsIn(hasOutputs ? run.outputs : best.outputs), new Set([USAGE]));
      const outputs = usage === undefined || this.capture.hideOutputs ? content : { ...content, [USAGE]: usage };
      if (Object.keys(outputs).length > 0) run.outputs = JSON.stringify(outputs);
    }
    addAttachments(run, best, !hasInputs || !hasOutputs);
    run.events = withEarliestToken(run.events, best.events);
    // Clients abort a request that takes too long. The request then looks cancelled.
    const isTimeout = TIMEOUT.test(run.error ?? '');
    if (isLate || run.error !== undefined) run.error = moreDetailed(run.error, (isLate ? last : best).error);
    if (isLate && this.#endTime > (run.endTime ?? '')) run.endTime = this.#endTime;
    const metadata = new Map([...(best.metadata ?? []), ...(run.metadata ?? [])]);
    if (isTimeout && run.metadata?.has(END_REASON) !== true) metadata.delete(END_REASON);
    const sources = [...this.#sources, ...sourcesOf(last)];
    metadata.set(SOURCES, JSON.stringify([...new Set(source === undefined ? sources : [source, ...sources])]));
    if (usage !== undefined) metadata.set(USAGE, JSON.stringify(usage));
    run.metadata = metadata;
  }
}

function fieldsIn(json: string | undefined): Fields {
  return json === undefined ? {} : fieldsOf(parsedJson(json));
}

function hasContent(outputs: string | undefined): boolean {
  return Object.keys(fieldsIn(outputs)).some((key) => key !== USAGE);
}

function usageOf({ metadata }: EncodedRun): Fields | undefined {
  const usage = metadata?.get(USAGE);
  return usage === undefined ? undefined : fieldsIn(usage);
}

function addAttachments(run: EncodedRun, from: EncodedRun, isTaken: boolean): void {
  if (!isTaken || from.attachments === undefined) return;
  const names = new Set(run.attachments?.map(({ name }) => name));
  run.attachments = [...(run.attachments ?? []), ...from.attachments.filter(({ name }) => !names.has(name))];
}

/** Returns the events of a span with the earliest first token of two records. */
function withEarliestToken(own: string | undefined, other: string | undefined): string | undefined {
  const [mine, theirs] = [own, other].map((json) => (json === undefined ? [] : (parsedJson(json) as Fields[])));
  const isToken = ({ name }: Fields): boolean => name === 'new_token';
  const [first] = [...(mine ?? []), ...(theirs ?? [])]
    .filter(isToken)
    .sort((a, b) => (`${a.time}` < `${b.time}` ? -1 : 1));
  if (first === undefined || mine?.find(isToken) === first) return own;
  return JSON.stringify([...(mine ?? []).filter((event) => !isToken(event)), first]);
}

function sourcesOf({ metadata }: EncodedRun): readonly string[] {
  const listed = parsedJson(metadata?.get(SOURCES) ?? 'null');
  if (Array.isArray(listed)) return listed.filter((source) => typeof source === 'string');
  const scope = textOf(fieldsOf(fieldsIn(metadata?.get('otel')).scope).name);
  return scope === undefined ? [] : [scope];
}

/** Returns the error with the longer first line. The other lines are the stack. */
function moreDetailed(one: string | undefined, other: string | undefined): string | undefined {
  const lengthOf = (error = ''): number => firstLine(error).length;
  return lengthOf(other) > lengthOf(one) ? other : one;
}
