import type { Run } from '../run/run.ts';
import { fieldsOf } from './fields.ts';
import { Reading, type StreamFold } from './model-stream.ts';

/**
 * The same as `followModelStream` for the body of a response, where another part of a client makes the stream of it than
 * the one that asked. Only iteration is followed, which is how these clients read; the body stays the same object.
 */
export function followEventBody(body: unknown, run: Run, fold: StreamFold): void {
  const iterate = fieldsOf(body)[Symbol.asyncIterator as never] as ((...args: unknown[]) => object) | undefined;
  if (typeof iterate !== 'function') {
    run.end();
    return;
  }
  const reading = new Reading(run, new EventFold(run, fold));
  const read = reading.watch(body as object);
  const value = function (this: unknown, ...args: unknown[]): unknown {
    const source = Reflect.apply(iterate, this, args);
    read(source);
    return source;
  };
  Reflect.defineProperty(body as object, Symbol.asyncIterator, { configurable: true, writable: true, value });
}

/** Takes the bytes of server-sent events whose data are one line of JSON each. */
class EventFold implements StreamFold {
  readonly #run: Run;
  readonly #fold: StreamFold;
  readonly #decoder = new TextDecoder();
  #rest = '';

  constructor(run: Run, fold: StreamFold) {
    this.#run = run;
    this.#fold = fold;
  }

  push(chunk: unknown): boolean {
    const lines = (this.#rest + this.#decoder.decode(chunk as Uint8Array, { stream: true })).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? '';
    let isContent = false;
    for (const line of lines) if (line.startsWith('data:')) isContent = this.#take(line.slice(5)) || isContent;
    return isContent;
  }

  record(run: Run): void {
    this.#fold.record(run);
  }

  #take(data: string): boolean {
    let event: unknown;
    try {
      event = JSON.parse(data);
    } catch (thrown) {
      // The client fails on it as well.
      this.#fail(thrown);
      return false;
    }
    const { type, error } = fieldsOf(event);
    if (type === 'error') this.#fail(error);
    return this.#fold.push(event);
  }

  #fail(error: unknown): void {
    this.#fold.record(this.#run);
    this.#run.fail(error);
  }
}
