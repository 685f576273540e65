import type { EventEmitter } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import type { Run } from '../run/run.ts';
import { abandonment, type Watched } from './abandonment.ts';
import { replaceOwn } from './own-method.ts';
import { endWith, type Plan } from './plan.ts';
import type { Reading } from './reading.ts';

/** A stream of Node that can be read, of `node:stream` or of a library with its own. */
export function isNodeReadable(value: object): value is Readable {
  return isEmitter(value) && isFunction(value, 'pipe') && isFunction(value, 'read');
}

/**
 * Follows a stream of Node by what it emits. It has no listener of ours: one for `data` or `readable` would make it flow,
 * and any would be counted. Whatever is read of it, in whichever way, it emits as `data`.
 */
export function followNodeReadable(stream: object, reading: Reading): boolean {
  const { readableEnded, destroyed } = stream as Readable;
  if (readableEnded || destroyed) return false;
  return followEvents(stream, (event, value) => {
    if (event === 'data') reading.took(value);
    else if (event === 'end') reading.end();
    else if (event === 'error' && !isLeft(value)) reading.fail(value);
    else if (event === 'error' || event === 'close') reading.cancel();
  });
}

/** What Node destroys a stream with that is left before its end, by a `break`: an abort that nobody asked for. */
function isLeft(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'ABORT_ERR' && cause === undefined;
}

/** What an emitter that is no readable stream says when its work is done. */
const ENDS: readonly unknown[] = ['end', 'finish', 'close', 'exit'];

/** Calls that wait for one emitter at once. What more of them hand out together is a value of theirs, a connection. */
const CALLS_MAX = 16;

/** Those who wait for an emitter, which is changed for the first of them alone. */
const waiting = new WeakMap<object, Set<EmitterCall>>();

/**
 * Follows any other emitter, a child process for example, to the first of its events that tells of an end or an error.
 * False when the value is none, is waited for by a call of the same function, or by too many. One that never tells of its
 * end has its run ended when it is collected, or has nothing more to say for long: it did not promise one.
 */
export function followEmitter(emitter: object, run: Run, plan: Plan): boolean {
  if (!isEmitter(emitter) || guard('traceable', () => isOver(emitter)) !== false) return false;
  const calls = waiting.get(emitter) ?? new Set();
  if (calls.size >= CALLS_MAX) return false;
  for (const call of calls) if (call.plan === plan) return false;
  if (!waiting.has(emitter)) {
    const tellAll = (event: unknown, value: unknown, self: object): void => {
      for (const call of calls) call.see(event, value, self);
    };
    if (!followEvents(emitter, tellAll)) return false;
    waiting.set(emitter, calls);
  }
  const call = new EmitterCall(run, plan, calls);
  calls.add(call);
  abandonment.watch(emitter, call);
  return true;
}

/** A call that has handed out an emitter. It does not hold on to that. */
class EmitterCall implements Watched {
  wasTouched = true;
  readonly idleMaxMs: number;
  readonly plan: Plan;
  readonly #run: Run;
  readonly #others: Set<EmitterCall>;

  constructor(run: Run, plan: Plan, others: Set<EmitterCall>) {
    this.idleMaxMs = run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
    this.plan = plan;
    this.#run = run;
    this.#others = others;
  }

  see(event: unknown, value: unknown, self: object): void {
    this.wasTouched = true;
    if (event === 'error') this.#run.fail(value);
    else if (ENDS.includes(event)) endWith(this.#run, this.plan, self);
    else if (this.#run.isOpen) return;
    this.#others.delete(this);
    abandonment.unwatch(this);
  }

  abandon(): void {
    this.#others.delete(this);
    this.#run.end();
  }
}

function isEmitter(value: object): value is EventEmitter {
  return isFunction(value, 'emit') && isFunction(value, 'on') && isFunction(value, 'listenerCount');
}

function isFunction(value: object, key: string): boolean {
  try {
    return typeof (value as Record<string, unknown>)[key] === 'function';
  } catch {
    return false;
  }
}

/** A stream that can only be written says so. */
function isOver(emitter: object): boolean {
  const { destroyed, writableFinished } = emitter as Partial<Writable>;
  return destroyed === true || writableFinished === true;
}

/** Sees events as `errorMonitor` does: before the listeners, and without being one, so that an unheard error is thrown. */
function followEvents(emitter: object, see: (event: unknown, value: unknown, self: object) => void): boolean {
  if (!Object.isExtensible(emitter)) return false;
  return replaceOwn(emitter, 'emit', (emit) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      guard('traceable', () => see(args[0], args[1], this as object));
      return Reflect.apply(emit, this, args);
    };
  });
}
