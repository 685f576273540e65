import { guard } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { abandonment, interceptOwn, type Method, type Settlement, type Watched } from '../instrument/observer.ts';
import { deriveOne } from '../instrument/promise.ts';
import type { Run } from '../run/run.ts';
import { endWithAnswer, followStream } from './answer-stream.ts';
import type { AnswerReader } from './call-reader.ts';
import { eventReader } from './fold.ts';

/** The state of a request whose response has started. */
interface ResponseProps {
  readonly response?: {
    readonly status?: unknown;
    readonly headers?: { get?(name: string): string | null };
    readonly body?: object | null;
  };
  readonly options?: { readonly stream?: unknown };
  readonly controller?: { readonly signal?: AbortSignal };
}

/**
 * The promise of SDKs that Stainless generates. `then`, `catch`, `finally` and `withResponse` parse the body of the
 * response. `asResponse` leaves the body to the caller.
 */
interface ApiPromise {
  responsePromise: Promise<ResponseProps>;
  parseResponse: Method;
  /** Set when the application first requests the parsed response. */
  parsedPromise?: unknown;
}

const PLACE = 'following an API call';

/**
 * Follows the promise of an SDK call in place, so that the promise stays the same object and stays lazy. Returns false
 * if `promise` is not such a promise.
 *
 * The run ends with the parsed response, or with the last chunk of a streamed response. If the application calls only
 * `asResponse`, the run ends with the status, because the body belongs to the caller. `requestIdHeader` is the response
 * header that contains the id of the request.
 */
export function followApiPromise(promise: object, run: Run, reader: AnswerReader, requestIdHeader: string): boolean {
  // A refused run needs no data.
  if (!run.isOpen) return true;
  const call = new FollowedCall(run, reader, requestIdHeader);
  return guard(PLACE, () => follow(promise as Partial<ApiPromise>, call)) ?? false;
}

function follow(promise: Partial<ApiPromise>, call: FollowedCall): boolean {
  const { responsePromise, parseResponse } = promise;
  if (!types.isPromise(responsePromise) || typeof parseResponse !== 'function') return false;
  // If the promise is frozen, no promise is derived, because nobody would handle the rejection of a derived promise.
  if (!Reflect.set(promise, 'parseResponse', parseResponse)) return false;
  const observed = deriveOne(responsePromise, {
    fulfilled: (props) => call.onResponse(props as ResponseProps),
    fail: (error) => call.fail(error),
  }) as Promise<ResponseProps>;
  // An instrumentation has already requested the parsed response, and handles the rejection.
  if (promise.parsedPromise !== undefined) observed.catch(() => {});
  observe(promise, observed, call);
  return true;
}

/** Makes a promise use the observed response and observes its parser. Also applies to promises of `_thenUnwrap`. */
function observe(promise: Partial<ApiPromise>, observed: Promise<ResponseProps>, call: FollowedCall): void {
  if (!types.isPromise(promise.responsePromise)) return;
  promise.responsePromise = observed;
  interceptOwn(promise, 'parseResponse', (parse, self, args) => call.parse(Reflect.apply(parse, self, args)));
  interceptOwn(promise, 'asResponse', (asResponse, self, args) => {
    // The caller handles the rejection of the response. If the application also parses, the parsed response is recorded.
    observed.then(
      () => promise.parsedPromise ?? call.endWithStatus(),
      () => {},
    );
    return Reflect.apply(asResponse, self, args);
  });
  // The message threads of Anthropic's SDK call `_responseProps` and read a streamed response themselves.
  interceptOwn(promise, '_responseProps', (responseProps, self, args) => {
    observed.then(
      (props) => call.followBody(props),
      () => {},
    );
    return Reflect.apply(responseProps, self, args);
  });
  interceptOwn(promise, '_thenUnwrap', (thenUnwrap, self, [transform, ...args]) => {
    const derived = Reflect.apply(thenUnwrap, self, [call.observeInput(transform), ...args]);
    guard(PLACE, () => observe(derived as Partial<ApiPromise>, observed, call));
    return derived;
  });
}

/** Ends the run of a call with the parsed response. */
class FollowedCall implements Settlement {
  readonly #run: Run;
  readonly #reader: AnswerReader;
  readonly #requestIdHeader: string;
  #unread: Watched | undefined;
  #status: unknown;
  #isBodyUsed = false;
  #isParsed = false;

  constructor(run: Run, reader: AnswerReader, requestIdHeader: string) {
    this.#run = run;
    this.#reader = reader;
    this.#requestIdHeader = requestIdHeader;
  }

  /** Watches this object, because every promise that can still read the body references this object. */
  onResponse({ response }: ResponseProps): void {
    guard(PLACE, () => {
      this.#status = response?.status;
      this.#run.set({ metadata: { request_id: response?.headers?.get?.(this.#requestIdHeader) || undefined } });
      if (this.#isBodyUsed) return;
      this.#unread = unreadResponse(this.#run, this.#status);
      abandonment.watch(this, this.#unread);
    });
  }

  /** In later versions of the SDK, a derived promise parses the response itself and passes the result to `transform`. */
  observeInput(transform: unknown): unknown {
    if (typeof transform !== 'function') return transform;
    return (...args: unknown[]): unknown => {
      this.fulfilled(args[0]);
      return transform(...args);
    };
  }

  parse(parsed: unknown): unknown {
    this.#useBody();
    if (types.isPromise(parsed)) return deriveOne(parsed, this);
    this.fulfilled(parsed);
    return parsed;
  }

  endWithStatus(): void {
    if (this.#isBodyUsed) return;
    this.#useBody();
    this.#run.end({ status: this.#status });
  }

  /** A response that is not streamed is parsed later. */
  followBody({ response, options, controller }: ResponseProps): void {
    guard(PLACE, () => {
      if (options?.stream !== true) return;
      this.#useBody();
      const isFollowed = followStream(response?.body, this.#run, eventReader(this.#reader), controller?.signal);
      if (!isFollowed) this.#run.end({ status: this.#status });
    });
  }

  /** Only the first parsed response is recorded. */
  fulfilled(parsed: unknown): void {
    if (this.#isParsed) return;
    this.#isParsed = true;
    if (followStream(parsed, this.#run, this.#reader)) return;
    endWithAnswer(this.#run, () => this.#reader.read(parsed));
  }

  fail(error: unknown): void {
    guard(PLACE, () => {
      const requestId = (error as { requestID?: unknown } | null)?.requestID;
      if (typeof requestId === 'string') this.#run.set({ metadata: { request_id: requestId } });
    });
    this.#run.fail(error);
  }

  #useBody(): void {
    this.#isBodyUsed = true;
    if (this.#unread !== undefined) abandonment.unwatch(this.#unread);
  }
}

/** Ends the run if nobody can read the response any more. Must not reference the watched `FollowedCall`. */
function unreadResponse(run: Run, status: unknown): Watched {
  return {
    idleMaxMs: run.capture.streamIdleMs,
    wasUsed: () => false,
    abandon(reason) {
      run.set({ outputs: { status } });
      run.interrupt(reason);
    },
  };
}
