import { clock, monotonicNowMs } from '../../base/clock.ts';
import { guard } from '../../base/guard.ts';
import { ownRequests } from '../../base/own-requests.ts';
import { FETCH_RECORDER, type FetchRecorder, shared } from '../../base/shared.ts';
import { devEnv } from '../../config/environment.ts';
import { defineOwn, type Method, type Settlement } from '../../instrument/results/observer.ts';
import { followIfThenable } from '../../instrument/results/promise.ts';
import { shapedLike } from '../../instrument/traceable.ts';
import { abortReason, errorText } from '../../payload/errors.ts';
import { fieldsOf, isFields, textOf } from '../../payload/fields.ts';
import { prepareRun } from '../../run/begin.ts';
import { callKey, mayBeOneModel } from '../../run/calls/same-call.ts';
import type { RunContext } from '../../run/context/context.ts';
import { applyIn, currentContext } from '../../run/context/current.ts';
import { ownerWith, sinkOf } from '../../run/context/inherited.ts';
import type { RunType } from '../../run/record.ts';
import { beginRun, Run } from '../../run/run.ts';
import type { StartOptions } from '../../run/run-options.ts';
import type { RunSink } from '../../run/sink.ts';
import type { CallReader } from '../../services/call-reader.ts';
import { markUnreadable } from '../answer-stream.ts';
import { type Step, takeModelStep } from '../langchain/steps.ts';
import { dialectOf, mayBeModelCall, postAddress } from './dialects.ts';
import { exchangeFor, type KeepExchange, unsent } from './exchange.ts';
import { requestBody, requestHead, requestHeader, requestSignal, requestUrl } from './request.ts';
import { followResponse } from './response.ts';
import { isAtService, warnIfUnread } from './unread.ts';

const OPERATION = 'recordFetch';
/** The name of this recorder among the sources of a run. */
const SOURCE = 'fetch';

/** Decides whether to record a model call that no other integration records. `header` returns a request header. */
export type CallFilter = (
  header: (name: string) => string | undefined,
  runType: RunType,
  model: string | undefined,
) => boolean;

interface State {
  stop?: (() => void) | undefined;
  filter?: CallFilter | undefined;
  /** Whether requests and responses are attached to runs. */
  areExchangesKept: boolean;
  /** Sends or answers the requests that may be model calls. Undefined if they are sent. */
  transport?: FetchTransport | undefined;
}

/** Answers a call of `fetch`. `send` sends the request. */
export type FetchTransport = (input: unknown, init: unknown, send: () => Promise<Response>) => Promise<Response>;

const state: State = shared('recordFetch', () => ({ areExchangesKept: false }));

/**
 * Replaces `globalThis.fetch` to record the model calls that the process makes through it. Each model call becomes an
 * `llm` or `embedding` run below the current run. All other requests are passed on unchanged.
 *
 * Returns a function that stops recording and restores `fetch`. If other code has replaced `fetch` in the meantime,
 * that replacement stays, but its calls are no longer recorded. While recording is on, further calls only return the
 * same function. If the runtime has no `fetch`, nothing is recorded.
 */
export function recordFetch(filter?: CallFilter): () => void {
  if (state.stop === undefined) {
    state.filter = filter;
    state.areExchangesKept = devEnv().exchanges === true;
  }
  state.stop ??= guard(OPERATION, install);
  return state.stop ?? (() => {});
}

/**
 * Lets `transport` answer the requests that may be model calls. Also records them, as `recordFetch` does. The returned
 * function ends the recording, and the answers too unless `keepsAnswers` is set.
 */
export function answerFetch(transport: FetchTransport): (keepsAnswers: boolean) => void {
  const stop = state.stop === undefined ? recordFetch() : undefined;
  state.transport = transport;
  return (keepsAnswers) => {
    const { fetch } = globalThis;
    stop?.();
    if (keepsAnswers) globalThis.fetch = fetch;
    else state.transport = undefined;
  };
}

/** Makes a replacement of `fetch` look like the original. Some libraries check whether `fetch` is native code. */
export function fetchShapedLike(replacement: Method, original: Method): Method {
  const disguise = shapedLike(replacement, original) as Method;
  defineOwn(disguise, 'toString', () => `${original}`);
  return disguise;
}

/** Records the model calls of another implementation of `fetch`, while `recordFetch` is on. */
export function recordedFetch(original: Method): Method {
  return recorderOf(original, () => state.stop !== undefined);
}

/** Records the model calls of an implementation of `fetch` with their requests and responses, whether or not `recordFetch` is on. */
export function exchangingFetch(original: Method): Method {
  state.areExchangesKept = true;
  return recorderOf(original, () => true);
}

function recorderOf(original: Method, isOn: () => boolean): Method {
  const recorder = {
    fetch(this: unknown, ...args: unknown[]): unknown {
      const { transport } = state;
      const isPassedOn = (!isOn() && transport === undefined) || ownRequests.has(args[1] as object);
      const address = isPassedOn ? undefined : postAddress(args[0], args[1]);
      if (address === undefined || !mayBeModelCall(address)) {
        if (address !== undefined && isAtService(address)) guard(OPERATION, () => warnIfUnread(address));
        return Reflect.apply(original, this, args);
      }
      if (transport === undefined) return recordCall(original, this, args);
      const send = (): Promise<Response> => Reflect.apply(original, this, args) as Promise<Response>;
      const answer = (): Promise<Response> => transport(args[0], args[1], send);
      return isOn() ? recordCall(answer, this, args) : answer();
    },
  };
  return fetchShapedLike(recorder.fetch, original);
}

function install(): (() => void) | undefined {
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, 'fetch');
  const original = globalThis.fetch as unknown as Method;
  if (typeof original !== 'function') return undefined;
  let isOn = true;
  const replacement = recorderOf(original, () => isOn);
  const value: FetchRecorder = { realm: globalThis, original };
  Object.defineProperty(replacement, FETCH_RECORDER, { configurable: true, value });
  // In Vercel's edge runtime, `fetch` is writable but not configurable.
  const { configurable = true, enumerable = true } = descriptor ?? {};
  Object.defineProperty(globalThis, 'fetch', { configurable, writable: true, enumerable, value: replacement });
  return () => {
    isOn = false;
    state.stop = undefined;
    if ((globalThis.fetch as unknown) !== replacement) return;
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, 'fetch');
    else Object.defineProperty(globalThis, 'fetch', descriptor);
  };
}

/**
 * Returns the run of the wrapped method that runs, or of another replacement of `fetch`, if it sends this request. A method
 * may also send others, for example in a `fetch` function of the client.
 */
function senderOf(
  around: RunContext | undefined,
  sink: RunSink,
  type: string,
  model: string | undefined,
  inputs: unknown,
): Run | undefined {
  const owner = ownerWith(sink, around);
  if (!(owner instanceof Run) || !owner.isOpen || owner.runType !== type) return undefined;
  const { call } = owner;
  if (call?.isSender !== true || !mayBeOneModel(call.model, model)) return undefined;
  const key = call.readKey();
  return key !== undefined && key === callKey(type, inputs) ? owner : undefined;
}

/** A model call that is observed until its response has been read. */
interface Call extends Settlement {
  /** The context of the call's run. Undefined if another integration records the call. */
  readonly context?: RunContext;
}

function recordCall(fetch: Method, self: unknown, args: unknown[]): unknown {
  const [input, init] = args;
  const around = guard(OPERATION, currentContext);
  const sink = guard(OPERATION, () => sinkOf(around));
  if (sink === undefined) return Reflect.apply(fetch, self, args);
  const begin = (body: unknown, startUs?: number): Call | undefined =>
    guard(OPERATION, () => beginCall({ input, init, body, startUs, around, sink }));
  const body = guard(OPERATION, () => requestBody(input, init));
  if (body instanceof Promise) return recordLater(() => Reflect.apply(fetch, self, args), body, begin);
  const call = begin(body);
  if (call === undefined) return Reflect.apply(fetch, self, args);
  const { context } = call;
  let result: unknown;
  try {
    result = context === undefined ? Reflect.apply(fetch, self, args) : applyIn(context, fetch, self, args);
  } catch (thrown) {
    call.fail(thrown);
    throw thrown;
  }
  return followCall(result, () => call);
}

/**
 * Records a call with a `Request` object. The body of a `Request` can only be read asynchronously, but the request is
 * not delayed. The run starts at the time of the call.
 */
function recordLater(
  send: () => unknown,
  body: Promise<unknown>,
  begin: (body: unknown, startUs: number) => Call | undefined,
): unknown {
  const startUs = clock.nowUs();
  let call: Call | undefined;
  let isBegun = false;
  const once = (text?: unknown): Call | undefined => {
    if (!isBegun) call = begin(text, startUs);
    isBegun = true;
    return call;
  };
  body.then(once, () => {});
  return followCall(send(), once);
}

function followCall(result: unknown, callOf: () => Call | undefined): unknown {
  return followIfThenable(result, {
    fulfilled: (response) => guard(OPERATION, () => callOf()?.fulfilled(response)),
    fail: (error) => callOf()?.fail(error),
  });
}

interface FetchRequest {
  readonly input: unknown;
  readonly init: unknown;
  readonly body: unknown;
  readonly startUs: number | undefined;
  readonly around: RunContext | undefined;
  readonly sink: RunSink;
}

/**
 * Starts a run for a request, unless it is the transport of a call that is already recorded: the request of the wrapped
 * method that runs, or of an open LangChain step. Returns undefined if the request must not be observed.
 */
function beginCall({ input, init, body, startUs, around, sink }: FetchRequest): Call | undefined {
  const address = requestUrl(input);
  const found = dialectOf(address, body);
  if (found === undefined) return warnIfUnread(address);
  const { reader, provider, request } = found;
  const { name, runType } = reader;
  const description = isFields(request) ? reader.describe(request, provider) : undefined;
  if (isFields(request) && description === undefined) return undefined;
  const inputs = description?.inputs ?? { error: 'the request could not be read' };
  // Read before the response, because the application may change the address and the headers for its next request.
  const head = state.areExchangesKept ? guard(OPERATION, () => requestHead(input, init)) : undefined;
  const keepFor = (run: Run): KeepExchange | undefined =>
    state.areExchangesKept && isFields(request) ? exchangeFor(run, { call: name, ...head, request }) : undefined;
  const model = textOf(fieldsOf(description?.metadata).ls_model_name);
  const sender = senderOf(around, sink, runType, model, inputs);
  if (sender?.call?.source === SOURCE) return undefined;
  if (sender !== undefined) return callOfExchange(sender, reader, keepFor(sender));
  const isStep = runType === 'llm' && model !== undefined;
  const step = isStep ? takeModelStep(model, inputs, around, sink) : undefined;
  if (step !== undefined) return callOfStep(step, step.run && callOfExchange(step.run, reader, keepFor(step.run)));
  const header = (key: string) => requestHeader(input, init, key);
  if (state.filter?.(header, runType, model) === false) return undefined;
  const options: StartOptions = { name, runType, source: SOURCE, ...(startUs !== undefined && { startUs }) };
  const details = {
    ids: description?.ids,
    metadata: description?.metadata ?? { ls_provider: provider },
    signal: requestSignal(input, init),
    started: (begun: Run) => description ?? markUnreadable(begun, 'request'),
  };
  const run = beginRun(prepareRun(options, around, inputs, { inputs: () => inputs, isSender: true }), details);
  const responded = watchAbort(run, input, init);
  return {
    context: run.context,
    fulfilled(response) {
      responded();
      if (run.isOpen) followResponse(response as Response, run, reader, keepFor(run));
    },
    fail(error) {
      responded();
      if (run.isOpen) keepFor(run)?.({ error: errorText(error) });
      run.fail(error);
    },
  };
}

/**
 * Reads why a request is aborted when it happens, because `fetch` later replaces the stack of the reason. A header tells
 * after how many seconds an SDK aborts: Google's rounds up, others round down, and a timer may fire early, so an abort in
 * the second before is a timeout too. Google's timer goes on after the response, when the returned function is called.
 */
function watchAbort(run: Run, input: unknown, init: unknown): () => void {
  const signal = requestSignal(input, init);
  const google = requestHeader(input, init, 'x-server-timeout');
  // Without a header, `overMs` is `NaN`, and no abort counts as a timeout.
  const seconds = Number(requestHeader(input, init, 'x-stainless-timeout') ?? google);
  const overMs = monotonicNowMs() + (seconds - 1) * 1_000;
  const onAbort = (): void => {
    run.abortReason = abortReason(signal, monotonicNowMs() >= overMs);
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  return () => google ?? signal?.removeEventListener('abort', onAbort);
}

function callOfStep(step: Step, exchange: Call | undefined): Call {
  return {
    fail(error) {
      step.state.isRequested = false;
      exchange?.fail(error);
    },
    fulfilled(response) {
      if (fieldsOf(response).ok === false) step.state.isRequested = false;
      exchange?.fulfilled(response);
    },
  };
}

/** Follows the response to a request of `run`, which records the call in another shape. */
function callOfExchange(run: Run, reader: CallReader, keep: KeepExchange | undefined): Call | undefined {
  if (keep === undefined) return undefined;
  const { name, runType } = reader;
  return {
    fulfilled(response) {
      if (!run.isOpen) return;
      const options: StartOptions = { name, runType, source: SOURCE, exporter: unsent(run) };
      followResponse(response as Response, beginRun(prepareRun(options, run.context)), reader, keep);
    },
    fail(error) {
      if (run.isOpen) keep({ error: errorText(error) });
    },
  };
}
