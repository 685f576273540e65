import { guard, ignoreErrors, reportFailure } from '../../base/guard.ts';
import { interceptOwn, tryFollow } from '../../instrument/results/observer.ts';
import { followIfThenable } from '../../instrument/results/promise.ts';
import { followBranches, followReadableStream, isReadableStream } from '../../instrument/results/stream.ts';
import { fieldsOf, textOf } from '../../payload/fields.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import type { Run } from '../../run/run.ts';
import type { AnswerReader } from '../../services/answer.ts';
import { AnswerStream, endWithAnswer } from '../answer-stream.ts';
import { bodyReader, isStreamType } from './body.ts';
import { type KeepExchange, StreamText } from './exchange.ts';

const OPERATION = 'recordFetch';

/** Response methods that read the complete body. */
const WHOLE = ['json', 'text', 'arrayBuffer', 'bytes', 'blob'] as const;

/** Returns the prototype of `Response`. Not read when this module loads, because Node would then load its `fetch`. */
const prototypeOfResponse = (): Response | undefined => globalThis.Response?.prototype;

/**
 * Records a response body while the application reads it. The run ends when the body ends. The response object is not
 * replaced. The body is never read, locked or copied here, but for that of an error. `keep` receives the body before the run ends.
 */
export function followResponse(response: Response, run: Run, answer: AnswerReader, keep?: KeepExchange): void {
  const { status, headers, body } = response;
  const isOk = response.ok !== false;
  const requestId = headers?.get?.('x-request-id') ?? headers?.get?.('request-id');
  run.set({ metadata: { request_id: requestId || undefined } });
  const contentType = headers?.get?.('content-type') ?? '';
  const read = bodyReader(isOk ? answer : errorReader(status), contentType);
  const isStream = isOk && answer.fold !== undefined && isStreamType(contentType);
  const text = isStream && keep !== undefined ? new StreamText(contentType, run.capture.payload.bytes) : undefined;
  const reader = keep === undefined ? read : readAndKeep(read, status, text, keep);
  const observer = new BodyObserver(run, reader, isOk, text);
  // A mock response may have no body, or a body that is not a stream.
  const stream = body && isReadableStream(body) ? body : undefined;
  const copy = isOk || stream === undefined ? undefined : ignoreErrors(() => response.clone().body);
  if (copy) return void readError(copy, observer).catch((thrown) => reportFailure(OPERATION, thrown));
  const followed = tryFollow(response, () => {
    if (body === null || !followMethods(response, observer)) return false;
    const isFollowed = stream !== undefined && tryFollow(stream, () => followReadableStream(stream, observer));
    observer.watch(isFollowed ? stream : response);
    return true;
  });
  if (followed) return;
  if (isOk) run.end({ status });
  else observer.end();
}

function followMethods(response: Response, observer: BodyObserver): boolean {
  const results = WHOLE.map((key) =>
    interceptOwn(response, key, (read, self, args) => {
      const { bodyUsed, body } = self as Response;
      // The original method rejects if the body is already being read.
      if (observer.isStepping || bodyUsed || body?.locked === true) return Reflect.apply(read, self, args);
      const method = read === prototypeOfResponse()?.json ? () => jsonOf(self as Response, observer) : read;
      return observer.readWhole(key, () => observer.step(method, self, args));
    }),
  );
  interceptOwn(response, 'clone', (clone, self, args) => {
    const { body } = self as Response;
    const copy = Reflect.apply(clone, self, args) as Response;
    guard(OPERATION, () => {
      followMethods(copy, observer);
      // Some runtimes split the body without calling the observed `tee` method.
      const branches = [(self as Response).body, copy.body].filter((branch) => branch && branch !== body);
      followBranches(branches as ReadableStream[], observer);
    });
    return copy;
  });
  return results.includes(true);
}

/** Works like `response.json()`, but also records the body if it is not JSON. */
async function jsonOf(response: Response, observer: BodyObserver): Promise<unknown> {
  const text = await (prototypeOfResponse() as Response).text.call(response);
  try {
    return JSON.parse(text);
  } catch {
    guard(OPERATION, () => observer.chunk(text));
    // Throws the runtime's own error for invalid JSON.
    return new Response(text).json();
  }
}

/** Limits for reading an error response, in bytes and milliseconds. */
const ERROR_BYTES = 65_536;
const ERROR_MS = 1_000;

/** Reads a copy of an error response. `openai` cancels the response itself before it retries. */
async function readError(body: ReadableStream<Uint8Array>, observer: BodyObserver): Promise<void> {
  const reader = body.getReader();
  const cancel = (): void => void reader.cancel().catch(() => {});
  const timer = setTimer(cancel, ERROR_MS).unref();
  for (let size = 0; size < ERROR_BYTES; ) {
    const next = await reader.read().catch(() => undefined);
    if (next?.done !== false) break;
    size += next.value.length;
    observer.chunk(next.value);
  }
  clearTimer(timer);
  cancel();
  observer.end();
}

class BodyObserver extends AnswerStream {
  readonly observesSource = true;
  readonly #reader: AnswerReader;
  readonly #isOk: boolean;
  readonly #text: StreamText | undefined;

  constructor(run: Run, reader: AnswerReader, isOk: boolean, text: StreamText | undefined) {
    super(run, reader);
    this.#reader = reader;
    this.#isOk = isOk;
    this.#text = text;
  }

  override chunk(value: unknown): void {
    this.#text?.add(value);
    super.chunk(value);
  }

  readWhole(method: (typeof WHOLE)[number], read: () => unknown): unknown {
    return followIfThenable(read(), {
      fulfilled: (value) => guard(OPERATION, () => this.#endWith(method, value)),
      fail: (error) => {
        // `json()` throws a `SyntaxError` if the body is not JSON.
        if (error instanceof SyntaxError) this.end();
        else this.fail(error);
      },
    });
  }

  #endWith(method: (typeof WHOLE)[number], value: unknown): void {
    if (method === 'json') {
      this.detach();
      endWithAnswer(this.run, () => this.#reader.read(value));
      return;
    }
    this.chunk(value instanceof ArrayBuffer ? new Uint8Array(value) : value);
    this.end();
  }

  /** If the response status is an error, the run fails even if the application does not read the body. */
  override cancel(): void {
    if (this.#isOk) super.cancel();
    else this.end();
  }

  override abandon(reason: string | undefined): void {
    if (this.#isOk) super.abandon(reason);
    else this.end();
  }
}

/** The returned function must not reference the `Response` object, which would then never be garbage-collected. */
function readAndKeep({ read, fold }: AnswerReader, status: number, text: StreamText | undefined, keep: KeepExchange) {
  return {
    read(response: unknown) {
      guard(OPERATION, () => keep({ status, response, ...text?.kept() }));
      return read(response);
    },
    fold,
  };
}

/** Reads an error response. Services put the error message in different fields. */
function errorReader(status: number): AnswerReader {
  return {
    read(value) {
      const { error, message, detail } = fieldsOf(Array.isArray(value) ? value[0] : value);
      const text = [fieldsOf(error).message, error, message, detail].find((one) => textOf(one));
      return { outputs: { status, body: value }, error: `HTTP ${status}${text === undefined ? '' : `: ${text}`}` };
    },
  };
}
