import { dialectOf, isModelAddress } from '../integrations/fetch/dialects.ts';
import { requestBody, requestUrl } from '../integrations/fetch/request.ts';
import { CAUSED_BY } from '../payload/errors.ts';
import { isFields } from '../payload/fields.ts';
import { encodePayload } from '../payload/serialize.ts';
import { setSoon } from '../platform/timers.ts';
import { currentContext } from '../run/context/current.ts';
import { sinkOf } from '../run/context/inherited.ts';
import { type Fixture, masked, type RecordedCall, requestOf } from './fixture.ts';
import { findCall, mismatchText, type ReplayedCall } from './match.ts';

/** What a replay does. A program in its own process reads it from the file that `RUNSPAN_REPLAY` names. */
export interface ReplayJob extends Fixture {
  /** Number of the first model call that is sent to the service, from 1. Absent if none is sent. */
  readonly liveFrom?: number | undefined;
  /** The file to which each event is added, as a line of JSON. Absent if nobody reads the events. */
  readonly report?: string | undefined;
}

/** What a replay reports for each model call. */
export type ReplayEvent =
  /** The recorded call with this index has answered. `notes` are the differences that the mode `failed` has accepted. */
  | { readonly answered: number; readonly notes: readonly string[] }
  /** No recorded call matches. */
  | { readonly mismatch: string }
  /** The program makes a call after the last recorded one, with which a failed trace ends. The call gets no answer. */
  | { readonly stopped: true };

/** Answers the model calls of a program from a fixture. Each recorded call answers one request. */
export class FixtureReplay {
  readonly #job: ReplayJob;
  readonly #report: (event: ReplayEvent) => void;
  readonly #used = new Set<number>();
  #count = 0;
  #liveFrom: number;

  constructor(job: ReplayJob, report: (event: ReplayEvent) => void) {
    this.#job = job;
    this.#liveFrom = job.liveFrom ?? Number.POSITIVE_INFINITY;
    this.#report = report;
  }

  /** Answers a call of `fetch`. Sends requests that are not model calls. Rejects as `fetch` did if there was no response. */
  async answer(input: unknown, init: unknown, send: () => Promise<Response>): Promise<Response> {
    const url = requestUrl(input);
    const body = await requestBody(input, init);
    const { reader, provider, request } = dialectOf(url, body) ?? {};
    const description = isFields(request) ? reader?.describe(request, `${provider}`) : undefined;
    const isUnreadable = body === undefined && URL.canParse(url) && isModelAddress(new URL(url));
    if (description === undefined && !isUnreadable) return send();
    if (++this.#count >= this.#liveFrom) return send();
    if (reader === undefined || request === undefined || description === undefined)
      return this.#refused('', 'a replay cannot read the body of a model call, for example a stream');
    const replayed: ReplayedCall = { call: reader.name, request: comparable(requestOf(description)) };
    const { calls, mode } = this.#job;
    const match = findCall(calls, this.#used, replayed, mode);
    if (match === undefined) return this.#unanswered(replayed);
    const { index, notes } = match;
    this.#used.add(index);
    this.#report({ answered: index, notes });
    const recorded = calls[index] as RecordedCall;
    if (recorded.isLive) {
      this.#liveFrom = 0;
      return send();
    }
    return responseOf(recorded);
  }

  #unanswered(replayed: ReplayedCall): Promise<Response> {
    const { calls, mode } = this.#job;
    if (mode === 'failed' && this.#used.size === calls.length) {
      this.#report({ stopped: true });
      return new Promise(() => {});
    }
    return Promise.resolve(this.#refused(replayed.call, mismatchText(calls, this.#used, replayed)));
  }

  #refused(call: string, mismatch: string): Response {
    this.#report({ mismatch });
    return refusal(call, `runspan replay: ${mismatch}`);
  }
}

/** Returns the recorded response. Throws if there was none. */
function responseOf({ status, response, contentType, events, error }: RecordedCall): Response {
  if (status === undefined) throw errorLike(error);
  if (contentType === undefined || events === undefined) return Response.json(response, { status });
  const body = ReadableStream.from(chunksOf(events, error));
  return new Response(body, { status, headers: { 'content-type': contentType } });
}

/** Returns a request with the secrets masked that the application and the fixture mask. */
function comparable(request: object): ReplayedCall['request'] {
  const sink = sinkOf(currentContext());
  const json = sink === undefined ? JSON.stringify(request) : encodePayload('inputs', request, sink.capture).json;
  return masked(JSON.parse(json)) as ReplayedCall['request'];
}

/** Returns an error like the one with which `fetch` has failed. */
function errorLike(text = ''): Error {
  const [first = '', ...causes] = text.split(`\n${CAUSED_BY}`);
  const [, name = 'TypeError', message = first] = /^(\w+): (.*)$/.exec(first) ?? [];
  if (name !== 'TypeError') return new DOMException(message, name);
  // The AI SDK repeats a request whose error has a cause.
  return new TypeError(message, causes.length > 0 ? { cause: errorLike(causes.join(`\n${CAUSED_BY}`)) } : {});
}

/** Sends each event as a chunk, in a turn of the event loop as over a network, because an error discards unread chunks. */
async function* chunksOf(events: readonly string[], error: string | undefined): AsyncGenerator<Uint8Array> {
  for (const event of events) {
    yield new TextEncoder().encode(event);
    await new Promise<void>((resolve) => setSoon(resolve));
  }
  if (error !== undefined) throw errorLike(error);
}

/** The response to a request that no recorded call answers. SDKs do not repeat such a request. */
function refusal(call: string, message: string): Response {
  const error = { type: 'invalid_request_error', status: 'INVALID_ARGUMENT', code: 400, message };
  const body = { type: 'error', error: call.startsWith('ollama.') ? message : error, message };
  return Response.json(body, { status: 400, headers: { 'x-should-retry': 'false' } });
}
