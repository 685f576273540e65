import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import type { Run } from '../run/run.ts';
import { Abandonment } from './abandonment.ts';
import { type AnswerReader, endWithAnswer, markEnding } from './answer.ts';
import { followModelStream } from './model-stream.ts';

type Method = (...args: unknown[]) => unknown;

/** What an SDK knows of a request once its response has begun. */
interface Responded {
  readonly response?: { readonly status?: unknown; readonly headers?: { get?(name: string): string | null } };
}

/**
 * The promise of the SDKs that Stainless generates. It reads the body of the response only when it is asked to, by
 * `then`, `catch`, `finally` or `withResponse`; `asResponse` leaves the body to the caller.
 */
interface ApiPromise {
  responsePromise: Promise<Responded>;
  parseResponse: (...args: unknown[]) => unknown;
  /** There as soon as somebody has asked for the answer. */
  parsedPromise?: unknown;
  asResponse?: Method;
  _thenUnwrap?: Method;
}

/** Headers in which services give the id of a request. */
const REQUEST_ID_HEADERS = ['x-request-id', 'request-id'];

/**
 * Follows the promise that a call of such an SDK gives, which stays the same object, as lazy as it was: its two parts, the
 * response and the reading of it, are observed where it keeps them, and none of its methods is called. False when it is no
 * such promise.
 *
 * The run ends with the parsed answer, and with the last chunk of a streamed one. After `asResponse()` alone the body is
 * the caller's, and the run ends with the status.
 */
export function followApiPromise(promise: object, run: Run, reader: AnswerReader): boolean {
  // A run that was refused has nothing to be told.
  if (!run.isOpen) return true;
  return guard('following an API call', () => follow(promise as Partial<ApiPromise>, run, reader)) ?? false;
}

function follow(promise: Partial<ApiPromise>, run: Run, reader: AnswerReader): boolean {
  const { responsePromise, parseResponse } = promise;
  if (!types.isPromise(responsePromise) || typeof parseResponse !== 'function') return false;
  // What takes one of its properties takes them all; the rejection of a derived promise has to have its place.
  if (!Reflect.set(promise, 'parseResponse', parseResponse)) return false;
  const call = new FollowedCall(run, reader);
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
  observe(promise, responded, call);
  return true;
}

/** Has a promise read the observed response, and its parser observed; the same for all that `_thenUnwrap` derives from it. */
function observe(promise: Partial<ApiPromise>, responded: Promise<Responded>, call: FollowedCall): void {
  const { parseResponse, asResponse, _thenUnwrap } = promise;
  if (!types.isPromise(promise.responsePromise) || typeof parseResponse !== 'function') return;
  promise.responsePromise = responded;
  promise.parseResponse = function (this: unknown, ...args: unknown[]): unknown {
    return call.parse(Reflect.apply(parseResponse, this, args));
  };
  replace(promise, 'asResponse', asResponse, (original) => {
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
  replace(promise, '_thenUnwrap', _thenUnwrap, (original) => {
    return function (this: unknown, transform: unknown, ...args: unknown[]): unknown {
      const derived = Reflect.apply(original, this, [call.before(transform), ...args]);
      guard('following an API call', () => observe(derived as Partial<ApiPromise>, responded, call));
      return derived;
    };
  });
}

/** Puts a method in the place of one that is the promise's own, or inherited: it then stays out of sight. */
function replace(
  promise: Partial<ApiPromise>,
  key: keyof ApiPromise,
  method: Method | undefined,
  wrap: (original: Method) => Method,
): void {
  if (typeof method !== 'function') return;
  const enumerable = Object.getOwnPropertyDescriptor(promise, key)?.enumerable ?? false;
  Reflect.defineProperty(promise, key, { configurable: true, writable: true, enumerable, value: wrap(method) });
}

class FollowedCall {
  readonly #run: Run;
  readonly #reader: AnswerReader;
  readonly #abandonment = new Abandonment();
  #status: unknown;
  #isParsing = false;
  #isParsed = false;

  constructor(run: Run, reader: AnswerReader) {
    this.#run = run;
    this.#reader = reader;
  }

  /** Each promise by which the body may still be read leads to this call, as the request did until now. */
  responded(props: Responded): void {
    guard('following an API call', () => {
      const { response } = props;
      this.#status = response?.status;
      this.#run.set({ metadata: { request_id: requestIdOf(response?.headers) } });
      if (!this.#isParsing) this.#abandonment.watch(this, interruptionOf(this.#run, this.#status));
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
    this.#isParsing = true;
    this.#abandonment.stop();
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
    this.#abandonment.stop();
    this.#run.end({ status: this.#status });
  }

  failed(error: unknown): void {
    guard('following an API call', () => {
      if (isAbort(error)) markEnding(this.#run, 'cancelled');
      const requestId = (error as { requestID?: unknown } | null)?.requestID;
      if (typeof requestId === 'string') this.#run.set({ metadata: { request_id: requestId } });
    });
    this.#run.fail(error);
  }

  /** Whoever reads the same response again gets an error, or what is recorded already. */
  #parsed(value: unknown): void {
    if (this.#isParsed) return;
    this.#isParsed = true;
    if (followModelStream(value, this.#run, this.#reader)) return;
    endWithAnswer(this.#run, () => this.#reader.read(value));
  }
}

/** Made apart from the call: a closure of its methods would lead to it. */
function interruptionOf(run: Run, status: unknown): () => void {
  return () => {
    markEnding(run, 'interrupted');
    run.end({ status });
  };
}

function requestIdOf(headers: { get?(name: string): string | null } | undefined): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers?.get?.(name);
    if (typeof id === 'string' && id !== '') return id;
  }
  return undefined;
}

/** The SDKs name their own error after the user who aborted; its `name` is that of any error. */
function isAbort(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  return (error as Error).name === 'AbortError' || error.constructor.name === 'APIUserAbortError';
}
