import { pathText, pathTo } from '../base/forest.ts';
import { bodyReader } from '../integrations/fetch/body.ts';
import { readerNamed } from '../integrations/fetch/dialects.ts';
import { type Exchange, isShown, isStreamed } from '../integrations/fetch/exchange.ts';
import { CAUSED_BY } from '../payload/errors.ts';
import { fieldsOf, parsedJson, without } from '../payload/fields.ts';
import { MODEL_TYPES } from '../run/calls/same-call.ts';
import type { RunRecord } from '../run/record.ts';
import type { CallReader } from '../services/call-reader.ts';
import { EXCHANGE_NAME } from '../services/conversation.ts';
import { fixtureRules, masked, type RecordedCall, requestOf } from './fixture.ts';

export interface ExportedRun extends Omit<RunRecord, 'attachments'> {
  readonly attachments?: readonly { readonly name: string; readonly data: string }[];
}

export interface TraceCalls {
  /** The calls of each run, in the order of the runs. */
  readonly ofRuns: readonly (readonly RecordedCall[])[];
  /** The model calls that a replay cannot answer, each with the reason. */
  readonly missing: readonly string[];
}

/** Whether a run records a call of a model. The run type of a service that ranks documents is `retriever`. */
export function isModelCall({ name, run_type: type }: ExportedRun): boolean {
  return MODEL_TYPES.includes(type) || readerNamed(name)?.runType === type;
}

/** Finds the model calls of a trace, whose runs are in the order of their starts. */
export function traceCallsOf(runs: readonly ExportedRun[]): TraceCalls {
  const byId = new Map(runs.map((run) => [run.id, run]));
  /** The runs that are model calls, or contain one. */
  const covered = new Set<string>();
  const results = runs.toReversed().map((run): RecordedCall[] | string => {
    const path = pathTo(run, byId);
    try {
      const exchanges = exchangesOf(run);
      const own = (exchanges.length > 0 ? exchanges : callOf(run)).map(complete);
      if (own.length === 0 && isModelCall(run) && !covered.has(run.id)) throw new NotReplayable(UNKNOWN);
      if (own.length > 0) for (const { id } of path) covered.add(id);
      const below = pathText(path.slice(0, -1));
      return own.map((call) => masked({ below, ...call }) as RecordedCall);
    } catch (thrown) {
      if (!(thrown instanceof NotReplayable)) throw thrown;
      return `${pathText(path)}: ${thrown.message}`;
    }
  });
  results.reverse();
  return {
    ofRuns: results.map((one) => (typeof one === 'string' ? [] : one)),
    missing: results.filter((one) => typeof one === 'string'),
  };
}

/** Thrown for a model call that a replay cannot answer. The message says why. */
class NotReplayable extends Error {}

const UNKNOWN = 'its request is not recorded; `runspan dev` records the requests that are sent with fetch';
const NO_STREAM = 'its stream is not recorded; `runspan dev` records the streams that are received with fetch';
const NOT_SHOWN = 'its stream is not recorded: it contains a secret, exceeds a limit or was read with `blob()`';

/** A call before it is checked. The response of a stream is also combined. */
interface OwnCall extends Omit<RecordedCall, 'below' | 'events'> {
  readonly stream?: string;
}

/** Returns the requests that are attached to a run, with their responses. */
function exchangesOf({ attachments = [], error }: ExportedRun): OwnCall[] {
  const exchanges = attachments.filter(({ name }) => EXCHANGE_NAME.test(name));
  return exchanges.map(({ data }, at) => {
    const text = Buffer.from(data, 'base64').toString();
    const { call = '', url: _, headers: __, request, ...end } = fieldsOf(parsedJson(text)) as Partial<Exchange>;
    const reader = readerNamed(call);
    const description = reader?.describe(request, '');
    if (reader === undefined || description === undefined || (end.status ?? end.error) === undefined)
      throw new NotReplayable('its attachment is damaged');
    const stated = end.error && { error: withoutStacks(end.error) };
    const own = { call, request: requestOf(description), ...end, ...stated };
    return at === exchanges.length - 1 ? withError(own, reader, error) : own;
  });
}

/** Adds the error of a run whose response ended early. Errors that the service reports are in the response. */
function withError(call: OwnCall, reader: CallReader, error: string | undefined): OwnCall {
  const isWhole =
    error === undefined || call.status !== 200 || bodyReader(reader, '').read(call.response).error !== undefined;
  return isWhole ? call : { ...call, error: withoutStacks(error) };
}

/** Returns the first line of an error, and that of each cause. */
function withoutStacks(error: string): string {
  const lines = error.split('\n');
  return lines.filter((line, at) => at === 0 || line.startsWith(CAUSED_BY)).join('\n');
}

/** Returns the call of a run whose inputs and outputs are those of the service. */
function callOf(run: ExportedRun): OwnCall[] {
  const { name: call, inputs, outputs = {}, error, extra } = run;
  const reader = readerNamed(call);
  if (reader?.isWhole !== true || reader.runType !== run.run_type) return [];
  if (Object.keys(inputs).length === 0) throw new NotReplayable('its inputs are hidden');
  const request = requestOf({ inputs, metadata: extra?.metadata ?? {} });
  if (Object.keys(outputs).length === 0) {
    if (error === undefined) throw new NotReplayable('its outputs are hidden, or were not read');
    return [{ call, request, error: withoutStacks(error) }];
  }
  const { status, body } = outputs;
  // If the service has refused the request, the outputs are the status and the body.
  if (typeof status === 'number') return [{ call, request, status, response: body }];
  if (isStreamed(call, request)) throw new NotReplayable(NO_STREAM);
  return [withError({ call, request, status: 200, response: without(outputs, ADDED) }, reader, error)];
}

/** Fields that the outputs contain besides the response. */
const ADDED: ReadonlySet<string> = new Set(['usage_metadata']);

/** Matches the texts that replace what a run's limits leave out, and files that are stored beside a payload. */
const LEFT_OUT = /\[Truncated(: |\])/;
const ATTACHED = /"\[(Attachment |Image: |Audio: )/;

/** Returns a call with the events of its stream. Throws if a part of it is not recorded. */
function complete(own: OwnCall): Omit<RecordedCall, 'below'> {
  const { stream, ...call } = own;
  const { response, contentType } = call;
  if (LEFT_OUT.test(JSON.stringify(own))) throw new NotReplayable('it is truncated; raise `limits` of `configure`');
  if (contentType === undefined) {
    // Without the content type of a stream, its text is not read as events.
    const isText = call.status === 200 && typeof response === 'string';
    if (isText && isStreamed(call.call, call.request)) throw new NotReplayable(NO_STREAM);
    if (ATTACHED.test(JSON.stringify(response) ?? '')) throw new NotReplayable('its answer contains a file');
    return call;
  }
  if (stream === undefined || !isShown(stream, response, fixtureRules())) throw new NotReplayable(NOT_SHOWN);
  // A blank line ends a server-sent event.
  const events = stream.split(contentType.includes('event-stream') ? /(?<=\n\r?\n|\r\r)/ : /(?<=\n)/);
  return { ...call, response: undefined, events };
}
