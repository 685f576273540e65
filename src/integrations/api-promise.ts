import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import type { Run } from '../run/run.ts';
import { type Abandonable, whenAbandoned } from './abandonment.ts';
import { followEventBody } from './event-body.ts';
import { type Fields, fieldsOf } from './fields.ts';
import { endEarly, followModelStream, type StreamFold } from './model-stream.ts';

/** What a service answers to one kind of call. */
export interface AnswerShape {
  /** The response header that names the request. */
  readonly requestIdHeader: string;
  /** Tells the run what a whole answer says. */
  record(run: Run, answer: unknown): void;
  /** Takes a streamed one. */
  fold(): StreamFold;
}

type Method = (...args: unknown[]) => unknown;

/** Of the class that the generated clients of OpenAI and Anthropic answer with, in every version so far. */
interface ApiPromise {
  responsePromise: Promise<unknown>;
  parseResponse: Method;
  readonly asResponse: Method;
  /** Where the client goes on with the response by itself. */
  readonly _responseProps?: Method;
}

const PLACE = 'following a request';

/**
 * Ends the run with what the promise of a generated client comes to. The promise stays the same object and as lazy as it
 * is: `then`, `catch`, `finally` and `withResponse` all rest on `responsePromise` and `parseResponse`, which are replaced
 * on it. One derived promise stands for the former, so that a rejection which nobody handles stays one.
 *
 * The run ends when the body has been parsed; when a stream has been read, see `followModelStream`; without outputs when
 * `asResponse()` leaves the body to the application; as interrupted when the promise is dropped. False when it is no
 * such promise.
 */
export function followApiPromise(promise: object, run: Run, shape: AnswerShape): boolean {
  const isFollowed = guard(PLACE, () => {
    if (!isApiPromise(promise)) return false;
    new Call(run, shape).follow(promise);
    return true;
  });
  return isFollowed === true;
}

function isApiPromise(promise: object): promise is ApiPromise {
  const { responsePromise, parseResponse, asResponse } = promise as Partial<ApiPromise>;
  return types.isPromise(responsePromise) && typeof parseResponse === 'function' && typeof asResponse === 'function';
}

/** One request, from its promise to the end of its run. */
class Call implements Abandonable {
  readonly #run: Run;
  readonly #shape: AnswerShape;
  #isParsing = false;

  constructor(run: Run, shape: AnswerShape) {
    this.#run = run;
    this.#shape = shape;
  }

  follow(promise: ApiPromise): void {
    const { responsePromise, parseResponse } = promise;
    const keep = whenAbandoned(promise, this);
    const parse = (result: unknown, props: unknown): unknown => {
      keep();
      this.#isParsing = true;
      return this.#followParsing(result, fieldsOf(props).response);
    };
    promise.responsePromise = responsePromise.then(undefined, (error) => this.#failed(error));
    promise.parseResponse = function (this: unknown, ...args: unknown[]): unknown {
      // Older versions pass the response alone, later ones the client before it.
      return parse(Reflect.apply(parseResponse, this, args), args.at(-1));
    };
    // Who has asked for the response may drop the promise that was asked.
    observe(promise, 'asResponse', keep, (response) => this.#answered(response));
    observe(promise, '_responseProps', keep, (props) => this.#handedOver(fieldsOf(props)));
  }

  abandoned(): void {
    endEarly(this.#run, 'interrupted');
  }

  #followParsing(parsed: unknown, response: unknown): unknown {
    if (!types.isPromise(parsed)) return this.#parsed(parsed, response);
    return parsed.then(
      (value) => this.#parsed(value, response),
      (error) => this.#failed(error),
    );
  }

  #parsed(value: unknown, response: unknown): unknown {
    const isStream = guard(PLACE, () => {
      this.#takeRequestId(response);
      return followModelStream(value, this.#run, this.#shape.fold());
    });
    if (isStream !== true) {
      guard(PLACE, () => this.#shape.record(this.#run, value));
      this.#run.end();
    }
    return value;
  }

  /** The bare response is there; `withResponse` asks for it beside parsing. */
  #answered(response: unknown): void {
    if (this.#isParsing) return;
    this.#takeRequestId(response);
    this.#run.end();
  }

  /** What is not streamed is parsed all the same. */
  #handedOver({ response, options }: Fields): void {
    if (fieldsOf(options).stream !== true) return;
    this.#takeRequestId(response);
    followEventBody((response as Partial<Response> | undefined)?.body, this.#run, this.#shape.fold());
  }

  #failed(error: unknown): never {
    guard(PLACE, () => {
      const { requestID } = fieldsOf(error);
      if (typeof requestID === 'string') this.#run.set({ metadata: { request_id: requestID } });
    });
    this.#run.fail(error);
    throw error;
  }

  #takeRequestId(response: unknown): void {
    const id = (response as Partial<Response> | undefined)?.headers?.get(this.#shape.requestIdHeader);
    if (typeof id === 'string') this.#run.set({ metadata: { request_id: id } });
  }
}

/** Puts a method on the promise itself that tells when it is called, and what its answer, a promise, comes to. */
function observe(
  promise: ApiPromise,
  name: 'asResponse' | '_responseProps',
  called: () => void,
  settled: (value: unknown) => void,
): void {
  const method = promise[name];
  if (typeof method !== 'function') return;
  const value = function (this: unknown, ...args: unknown[]): unknown {
    called();
    return (Reflect.apply(method, this, args) as Promise<unknown>).then((result) => {
      guard(PLACE, () => settled(result));
      return result;
    });
  };
  Reflect.defineProperty(promise, name, { configurable: true, writable: true, value });
}
