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

/**
 * Follows any other emitter, a child process for example, to the first of its events that tells of an end or an error.
 * False when the value is none. One that never tells of its end has its run ended when it is collected, or has
 * nothing more to say for long: it did not promise one.
 */
export function followEmitter(emitter: object, run: Run, plan: Plan): boolean {
  if (!isEmitter(emitter) || guard('traceable', () => isOver(emitter)) !== false) return false;
  const silence: Watched = {
    wasTouched: true,
    idleMaxMs: run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs,
    abandon: () => run.end(),
  };
  const isFollowed = followEvents(emitter, (event, value, self) => {
    silence.wasTouched = true;
    if (event === 'error') run.fail(value);
    else if (ENDS.includes(event)) endWith(run, plan, self);
    if (!run.isOpen) abandonment.unwatch(silence);
  });
  if (isFollowed && run.isOpen) abandonment.watch(emitter, silence);
  return isFollowed;
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
