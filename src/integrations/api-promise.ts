import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { types } from '../base/node.ts';
import { abandonment, type Method, replaceOwn, type Watched } from '../instrument/observer.ts';
import type { Run } from '../run/run.ts';
import { type AnswerReader, endWithAnswer } from './answer.ts';
import { followEventBody } from './event-body.ts';
import { followModelStream } from './model-stream.ts';

/** What an SDK knows of a request once its response has begun. */
interface Responded {
  readonly response?: {
    readonly status?: unknown;
    readonly headers?: { get?(name: string): string | null };
    readonly body?: object | null;
  };
  readonly options?: { readonly stream?: unknown };
  readonly controller?: { readonly signal?: AbortSignal };
}

/**
 * The promise of the SDKs that Stainless generates. It reads the body of the response only when it is asked to, by
 * `then`, `catch`, `finally` or `withResponse`; `asResponse` leaves the body to the caller.
 */
interface ApiPromise {
  responsePromise: Promise<Responded>;
  parseResponse: Method;
  /** There as soon as somebody has asked for the answer. */
  parsedPromise?: unknown;
}

const PLACE = 'following an API call';

/**
 * Follows the promise that a call of such an SDK gives, which stays the same object, as lazy as it was: its two parts, the
 * response and the reading of it, are observed where it keeps them, and none of its methods is called. False when it is no
 * such promise.
 *
 * The run ends with the parsed answer, and with the last chunk of a streamed one. After `asResponse()` alone the body is
 * the caller's, and the run ends with the status. `requestIdHeader` is the one in which the service gives the id of a
 * request.
 */
export function followApiPromise(promise: object, run: Run, reader: AnswerReader, requestIdHeader: string): boolean {
  // A run that was refused has nothing to be told.
  if (!run.isOpen) return true;
  const call = new FollowedCall(run, reader, requestIdHeader);
  return guard(PLACE, () => follow(promise as Partial<ApiPromise>, call)) ?? false;
}

function follow(promise: Partial<ApiPromise>, call: FollowedCall): boolean {
  const { responsePromise, parseResponse } = promise;
  if (!types.isPromise(responsePromise) || typeof parseResponse !== 'function') return false;
  // What takes one of its properties takes them all; the rejection of a derived promise has to have its place.
  if (!Reflect.set(promise, 'parseResponse', parseResponse)) return false;
  const responded = responsePromise.then(
    (props) => {
      call.responded(props);
      return props;
    },
    (error) => {
      call.failed(error);
      throw error;
    },
  );
  // An instrumentation has asked for the answer before us: what it was given stands for the rejection.
  if (promise.parsedPromise !== undefined) responded.catch(() => {});
  observe(promise, responded, call);
  return true;
}

/** Has a promise read the observed response, and its parser observed; the same for all that `_thenUnwrap` derives from it. */
function observe(promise: Partial<ApiPromise>, responded: Promise<Responded>, call: FollowedCall): void {
  if (!types.isPromise(promise.responsePromise)) return;
  promise.responsePromise = responded;
  replaceOwn(promise, 'parseResponse', (original) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      return call.parse(Reflect.apply(original, this, args));
    };
  });
  replaceOwn(promise, 'asResponse', (original) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      const response = Reflect.apply(original, this, args);
      // The caller's promise stands for the rejection. Whoever asked for the answer too has it recorded.
      responded.then(
        () => promise.parsedPromise ?? call.tookResponse(),
        () => {},
      );
      return response;
    };
  });
  // Where a client goes on with a streamed response by itself.
  replaceOwn(promise, '_responseProps', (original) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      const props = Reflect.apply(original, this, args);
      if (!types.isPromise(props)) return props;
      return props.then((settled) => {
        call.handedOver(settled as Responded);
        return settled;
      });
    };
  });
  replaceOwn(promise, '_thenUnwrap', (original) => {
    return function (this: unknown, transform: unknown, ...args: unknown[]): unknown {
      const derived = Reflect.apply(original, this, [call.before(transform), ...args]);
      guard(PLACE, () => observe(derived as Partial<ApiPromise>, responded, call));
      return derived;
    };
  });
}

class FollowedCall {
  readonly #run: Run;
  readonly #reader: AnswerReader;
  readonly #requestIdHeader: string;
  #unread: UnreadBody | undefined;
  #status: unknown;
  #isParsing = false;
  #isParsed = false;

  constructor(run: Run, reader: AnswerReader, requestIdHeader: string) {
    this.#run = run;
    this.#reader = reader;
    this.#requestIdHeader = requestIdHeader;
  }

  /** Each promise by which the body may still be read leads to this call, as the request did until now. */
  responded({ response }: Responded): void {
    guard(PLACE, () => {
      this.#status = response?.status;
      this.#run.set({ metadata: { request_id: response?.headers?.get?.(this.#requestIdHeader) || undefined } });
      if (this.#isParsing) return;
      this.#unread = new UnreadBody(this.#run, this.#status);
      abandonment.watch(this, this.#unread);
    });
  }

  /** Later versions of the SDK have derived promises parse by themselves: what is transformed is the answer. */
  before(transform: unknown): unknown {
    if (typeof transform !== 'function') return transform;
    const call = this;
    return function (this: unknown, ...args: unknown[]): unknown {
      call.#parsed(args[0]);
      return Reflect.apply(transform, this, args);
    };
  }

  parse(parsed: unknown): unknown {
    this.#isRead();
    if (!types.isPromise(parsed)) {
      this.#parsed(parsed);
      return parsed;
    }
    return parsed.then(
      (value) => {
        this.#parsed(value);
        return value;
      },
      (error) => {
        this.failed(error);
        throw error;
      },
    );
  }

  tookResponse(): void {
    if (this.#isParsing) return;
    this.#isRead();
    this.#run.end({ status: this.#status });
  }

  /** What is not streamed is parsed all the same. */
  handedOver(props: Responded): void {
    guard(PLACE, () => {
      if (props.options?.stream !== true) return;
      this.#isRead();
      if (!followEventBody(props, this.#run, this.#reader)) this.#run.end({ status: this.#status });
    });
  }

  failed(error: unknown): void {
    guard(PLACE, () => {
      const requestId = (error as { requestID?: unknown } | null)?.requestID;
      if (typeof requestId === 'string') this.#run.set({ metadata: { request_id: requestId } });
    });
    this.#run.fail(error);
  }

  #isRead(): void {
    this.#isParsing = true;
    if (this.#unread !== undefined) abandonment.unwatch(this.#unread);
  }

  /** Whoever reads the same response again gets an error, or what is recorded already. */
  #parsed(value: unknown): void {
    if (this.#isParsed) return;
    this.#isParsed = true;
    if (followModelStream(value, this.#run, this.#reader)) return;
    endWithAnswer(this.#run, () => this.#reader.read(value));
  }
}

/** Stands for a response that nobody has read. It does not lead to the call, which is watched. */
class UnreadBody implements Watched {
  wasTouched = true;
  readonly #run: Run;
  readonly #status: unknown;

  constructor(run: Run, status: unknown) {
    this.#run = run;
    this.#status = status;
  }

  get idleMaxMs(): number {
    return this.#run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
  }

  abandon(reason: string): void {
    this.#run.set({ outputs: { status: this.#status } });
    this.#run.interrupt(reason);
  }
}
