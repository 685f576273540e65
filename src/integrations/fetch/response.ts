import { guard, reportFailure } from '../../base/guard.ts';
import { interceptOwn, type StreamObserver, tryFollow } from '../../instrument/results/observer.ts';
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
 * replaced. The response body is never read, locked or copied here. `keep` receives the body before the run ends.
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

/** Limits for reading an error response that its consumer has cancelled, in bytes and milliseconds. */
const REST_MAX = 65_536;
const REST_MS = 1_000;

class BodyObserver extends AnswerStream {
  readonly observesSource = true;
  readonly takeRest: StreamObserver['takeRest'];
  readonly #reader: AnswerReader;
  readonly #isOk: boolean;
  readonly #text: StreamText | undefined;
  #isTaken = false;

  constructor(run: Run, reader: AnswerReader, isOk: boolean, text: StreamText | undefined) {
    super(run, reader);
    this.#reader = reader;
    this.#isOk = isOk;
    this.#text = text;
    if (!isOk) this.takeRest = (open) => this.#take(open);
  }

  /** Reads an error response that its consumer cancels unread, as `openai` does before it retries. */
  #take(open: () => ReadableStreamDefaultReader): boolean {
    if (this.#isTaken || !this.run.isOpen) return false;
    const rest = this.#readRest(open());
    this.#isTaken = true;
    rest.catch((thrown) => reportFailure(OPERATION, thrown));
    return true;
  }

  async #readRest(reader: ReadableStreamDefaultReader): Promise<void> {
    const cancel = (): void => void reader.cancel().catch(() => {});
    const timer = setTimer(cancel, REST_MS).unref();
    for (let size = 0; size < REST_MAX; ) {
      const next = await reader.read().catch(() => undefined);
      if (next?.done !== false) break;
      size += next.value.length;
      this.chunk(next.value);
    }
    clearTimer(timer);
    cancel();
    reader.releaseLock();
    this.end();
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
    else if (!this.#isTaken) this.end();
  }

  override abandon(reason: string | undefined): void {
    if (this.#isOk) super.abandon(reason);
    else this.end();
  }
}

/** The returned function must not reference the `Response` object, which would then never be garbage-collected. */
function readAndKeep(
  { read, fold }: AnswerReader,
  status: number,
  text: StreamText | undefined,
  keep: KeepExchange,
): AnswerReader {
  return {
    read(response) {
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
