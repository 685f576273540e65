import { makeSlot } from '../../base/slot.ts';
import { exactJson, type Fields, isFields, parsedJson } from '../../payload/fields.ts';
import { encodePayload, serialize } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import type { Run } from '../../run/run.ts';
import { type CapturePolicy, noopSink, type RunSink } from '../../run/sink.ts';
import { isData } from '../../services/deltas.ts';

/** The request and the response of a model call. Attached to its run as JSON text. */
export interface Exchange {
  /** The name of the reader of the request's format, for example `openai.chat.completions`. */
  readonly call: string;
  /** The address of the request, with its secrets masked. Absent if the request is a form. */
  readonly url?: string;
  /** The headers without which the service reads the request in another way, such as `anthropic-beta`. */
  readonly headers?: Fields;
  readonly request: Fields;
  /** The status of the response. Absent if there was none. */
  readonly status?: number;
  /** The response. A stream of events is combined to the format of a response that is not streamed. */
  readonly response?: unknown;
  /** The content type of a stream of events. */
  readonly contentType?: string;
  /** The text of a stream of events. Absent if redaction would change it, if it exceeds a limit or was read with `blob()`. */
  readonly stream?: string;
  /** Why there was no response, or why the response ended early: `Name: message`, and a line for each cause. */
  readonly error?: string;
}

/** Receives the response, or why there is none. */
export type KeepExchange = (end: Omit<Exchange, keyof SentRequest>) => void;

/** What is known of an exchange when its request is sent. */
export type SentRequest = Pick<Exchange, 'call' | 'url' | 'headers' | 'request'>;

const countOf = makeSlot<{ count: number }>();

/** Whether a request asks for a stream. Ollama streams its answers by default. */
export function isStreamed(call: string, { stream }: Fields): boolean {
  return call.startsWith('ollama.') ? stream !== false : stream === true;
}

/**
 * Returns a function that attaches a request and its response to a run. Returns undefined if the run hides a payload, or
 * if paths, hooks or a mask of the sink change payloads, because these apply only to the recorded inputs and outputs.
 */
export function exchangeFor(run: Run, sent: SentRequest): KeepExchange | undefined {
  const { capture } = run;
  if (capture.hideInputs || capture.hideOutputs || changesPayloads(capture)) return undefined;
  const sentJson = encodePayload('inputs', sent, capture).json;
  return ({ stream, ...end }) => {
    const isKept = stream !== undefined && isShown(stream, end.response, capture.payload);
    const { json } = encodePayload('outputs', isKept ? { ...end, stream } : end, capture);
    const text = `${sentJson.slice(0, -1)},${json.slice(1)}`;
    const { count } = countOf.get(run) ?? { count: 0 };
    countOf.set(run, { count: count + 1 });
    const name = count === 0 ? 'exchange' : `exchange-${count + 1}`;
    run.attach(name, new TextEncoder().encode(text), 'application/json');
  };
}

/**
 * Whether redaction leaves a stream as it is. A secret may be divided among several events, and is found only in the
 * response that they are combined to, or in the text that a field has in all events together.
 */
export function isShown(stream: string, response: unknown, rules: PayloadRules): boolean {
  const texts = stream.split(/[\r\n]+/).map((line) => line.replace(/^data:/, ''));
  const events = texts.map(parsedJson);
  // Redaction finds the names of secrets only in JSON.
  if (texts.some((text, at) => events[at] === text && /["{]/.test(text))) return false;
  const values = [response, stream, ...events, ...textsIn(events)];
  return values.every((value) => serialize(value, rules) === exactJson(value));
}

/** Returns the text of each field, joined over all events. */
function textsIn(events: readonly unknown[]): Iterable<string> {
  const texts = new Map<string, string>();
  const add = (value: unknown, path: string): void => {
    if (typeof value === 'string') texts.set(path, (texts.get(path) ?? '') + value);
    else for (const [key, item] of Object.entries(value ?? {})) add(item, `${path}.${key}`);
  };
  for (const event of events) add(event, '');
  return texts.values();
}

/** Keeps the text of a stream of events, up to a maximum length. */
export class StreamText {
  readonly #contentType: string;
  readonly #charactersMax: number;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #text: string | undefined = '';

  constructor(contentType: string, charactersMax: number) {
    this.#contentType = contentType;
    this.#charactersMax = charactersMax;
  }

  add(chunk: unknown): void {
    if (this.#text === undefined) return;
    const text = isData(chunk) && typeof chunk !== 'string' ? this.#decoder.decode(chunk, { stream: true }) : chunk;
    const all = typeof text === 'string' ? this.#text + text : undefined;
    this.#text = all !== undefined && all.length <= this.#charactersMax ? all : undefined;
  }

  /** Returns the text without a last line that was cut off. If the text is too long or unknown, returns none. */
  kept(): Pick<Exchange, 'contentType' | 'stream'> {
    const contentType = this.#contentType;
    if (this.#text === undefined) return { contentType };
    const text = this.#text.replace(LAST_VALUE, (line, json: string) => (isFields(parsedJson(json)) ? line : ''));
    // If the run has ended at the last event, the empty line after it was not read.
    return { contentType, stream: text.replace(LAST_DATA, '$&\n') };
  }
}

/** Match a last line: a JSON object without a line break, and data of an event without an empty line after it. */
const LAST_VALUE = /(?<![^\r\n])(?:data: *)?(\{[^\r\n]*)$/;
const LAST_DATA = /(?<![^\r\n])data:[^\r\n]*\r?\n$/;

/** Whether a sink changes recorded inputs and outputs in a way that cannot be applied to an attachment. */
export function changesPayloads({ hooks, payload }: CapturePolicy): boolean {
  return hooks !== undefined || payload.redaction?.root !== undefined || payload.isInline === true;
}

/** Returns a sink for a run that follows a response without being sent. */
export function unsent(run: Run): RunSink {
  const { isOff: _, ...sink } = noopSink;
  return { ...sink, capture: { ...run.capture, hideOutputs: true, hooks: undefined }, start: () => true };
}
