import { makeSlot } from '../../base/slot.ts';
import type { Fields } from '../../payload/fields.ts';
import { encodePayload } from '../../payload/serialize.ts';
import type { Run } from '../../run/run.ts';
import { type CapturePolicy, noopSink, type RunSink } from '../../run/sink.ts';

/**
 * The name of the attachment that contains the request and the response of a model call. If a run sends several requests,
 * the next attachments are `exchange-2`, `exchange-3` and so on.
 */
const EXCHANGE = 'exchange';

/** The content of the attachment, which is JSON text. */
export interface Exchange {
  /** The name of the reader of the request's format, for example `openai.chat.completions`. */
  readonly call: string;
  readonly request: Fields;
  /** The status of the response. Absent if there was none. */
  readonly status?: number;
  /** The response. A streamed response has the format of a response that is not streamed. */
  readonly response?: unknown;
  /** Why there was no response, in the format of a run's error. */
  readonly error?: string;
}

/** Receives the response, or why there is none. */
export type KeepExchange = (end: Omit<Exchange, 'call' | 'request'>) => void;

const countOf = makeSlot<{ count: number }>();

/**
 * Returns a function that attaches a request and its response to a run. Returns undefined if the run hides a payload, or
 * if paths, hooks or a mask of the sink change payloads, because these apply only to the recorded inputs and outputs.
 */
export function exchangeFor(run: Run, call: string, request: Fields): KeepExchange | undefined {
  const { capture } = run;
  if (capture.hideInputs || capture.hideOutputs || changesPayloads(capture)) return undefined;
  const requestJson = encodePayload('inputs', request, capture).json;
  return (end) => {
    const { json } = encodePayload('outputs', end, capture);
    const head = JSON.stringify({ call }).slice(0, -1);
    const text = `${head},"request":${requestJson},${json.slice(1)}`;
    const { count } = countOf.get(run) ?? { count: 0 };
    countOf.set(run, { count: count + 1 });
    const name = count === 0 ? EXCHANGE : `${EXCHANGE}-${count + 1}`;
    run.attach(name, new TextEncoder().encode(text), 'application/json');
  };
}

/** Whether a sink changes recorded inputs and outputs in a way that cannot be applied to an attachment. */
export function changesPayloads({ hooks, payload }: CapturePolicy): boolean {
  return hooks !== undefined || payload.redaction?.root !== undefined || payload.isInline === true;
}

/** Returns whether an attachment of this name may be a request and its response. */
export function isExchange(name: string): boolean {
  return /^exchange(-\d+)?$/.test(name);
}

/** Returns a sink for a run that follows a response without being sent. */
export function unsent({ capture }: Run): RunSink {
  const { isOff: _, ...sink } = noopSink;
  return { ...sink, capture: { ...capture, hideOutputs: true, hooks: undefined }, start: () => true };
}
