import { guard } from '../base/guard.ts';
import { replaceOwn } from './own-method.ts';
import type { Reading } from './reading.ts';

/**
 * The streams that helpers of the SDKs of OpenAI and Anthropic give back (`messages.stream`, `chat.completions.stream`).
 * They read the answer by themselves and emit it, to an iteration as well as to `on` and `finalMessage`.
 */
interface EventStream {
  _emit(event: string, ...args: unknown[]): void;
  readonly ended: boolean;
}

export function isEventStream(value: object): value is EventStream {
  const { _emit } = value as Partial<EventStream>;
  if (typeof _emit !== 'function') return false;
  const { done, ended } = value as Record<string, unknown>;
  return typeof done === 'function' && typeof ended === 'boolean';
}

/** Events that tell of everything that comes, as it is given to who iterates: of chat completions, responses, messages. */
const PIECES: readonly unknown[] = ['chunk', 'event', 'streamEvent'];

/**
 * Follows such a stream by what it emits: most of them are never iterated. It gets no listener of ours, for which it would
 * keep an error to itself that nobody handles.
 */
export function followEventStream(stream: object, reading: Reading): boolean {
  if ((stream as EventStream).ended) return false;
  return replaceOwn(stream, '_emit', (emit) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      guard('traceable', () => see(args[0], args[1], reading));
      return Reflect.apply(emit, this, args);
    };
  });
}

function see(event: unknown, value: unknown, reading: Reading): void {
  if (PIECES.includes(event)) reading.took(value);
  else if (event === 'end') reading.end();
  else if (event === 'error') reading.fail(value);
  else if (event === 'abort') reading.cancel();
}
