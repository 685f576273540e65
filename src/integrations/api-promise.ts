import { guard } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { abandonment, type Method, replaceOwn, type Watched } from '../instrument/observer.ts';
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
  const observed = responsePromise.then(
    (props) => {
      call.onResponse(props);
      return props;
    },
    (error) => {
      call.fail(error);
      throw error;
    },
  );
  // An instrumentation has already requested the parsed response, and handles the rejection.
  if (promise.parsedPromise !== undefined) observed.catch(() => {});
  observe(promise, observed, call);
  return true;
}

/** Makes a promise use the observed response and observes its parser. Also applies to promises of `_thenUnwrap`. */
function observe(promise: Partial<ApiPromise>, observed: Promise<ResponseProps>, call: FollowedCall): void {
  if (!types.isPromise(promise.responsePromise)) return;
  promise.responsePromise = observed;
  const observeResult = (key: string, onResult: (result: unknown) => unknown): void => {
    replaceOwn(promise, key, (original) => {
      return function (this: unknown, ...args: unknown[]): unknown {
        return onResult(Reflect.apply(original, this, args));
      };
    });
  };
  observeResult('parseResponse', (parsed) => call.parse(parsed));
  observeResult('asResponse', (response) => {
    // The caller handles the rejection of `response`. If the application also parses, the parsed response is recorded.
    observed.then(
      () => promise.parsedPromise ?? call.endWithStatus(),
      () => {},
    );
    return response;
  });
  // Some clients call `_responseProps` to read a streamed response themselves.
  observeResult('_responseProps', (props) => {
    if (!types.isPromise(props)) return props;
    return props.then((settled) => {
      call.followBody(settled as ResponseProps);
      return settled;
    });
  });
  replaceOwn(promise, '_thenUnwrap', (original) => {
    return function (this: unknown, transform: unknown, ...args: unknown[]): unknown {
      const derived = Reflect.apply(original, this, [call.observeInput(transform), ...args]);
      guard(PLACE, () => observe(derived as Partial<ApiPromise>, observed, call));
      return derived;
    };
  });
}

class FollowedCall {
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
    const call = this;
    return function (this: unknown, ...args: unknown[]): unknown {
      call.#endWith(args[0]);
      return Reflect.apply(transform, this, args);
    };
  }

  parse(parsed: unknown): unknown {
    this.#useBody();
    if (!types.isPromise(parsed)) {
      this.#endWith(parsed);
      return parsed;
    }
    return parsed.then(
      (value) => {
        this.#endWith(value);
        return value;
      },
      (error) => {
        this.fail(error);
        throw error;
      },
    );
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

  /** Only the first parsed value is recorded. */
  #endWith(parsed: unknown): void {
    if (this.#isParsed) return;
    this.#isParsed = true;
    if (followStream(parsed, this.#run, this.#reader)) return;
    endWithAnswer(this.#run, () => this.#reader.read(parsed));
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
