import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import type { Run } from '../run/run.ts';
import { Consumption } from './consumption.ts';
import { followNodeReadable, isNodeReadable } from './emitter.ts';
import { followEventStream, isEventStream } from './event-stream.ts';
import { followIterator } from './iterator.ts';
import { replaceOwn } from './own-method.ts';
import type { Plan } from './plan.ts';
import { followReadableStream, isReadableStream } from './readable-stream.ts';
import type { Reading } from './reading.ts';
import { SharedReading } from './shared-reading.ts';

type Follow = (value: object, reading: SharedReading) => boolean;

/**
 * Follows a result that comes in pieces: a generator, another iterator, an async iterable, a web or a Node stream. It
 * stays the same object, and nothing is read but what its reader reads. False when the value is none of these.
 */
export function followSequence(value: object, run: Run, plan: Plan): boolean {
  const follow = wayOf(value);
  if (follow === undefined) return false;
  const reading = new Consumption(run, plan);
  if (guard('traceable', () => isFollowed(value, follow, plan, reading)) === true) reading.watch(value);
  else run.end();
  return true;
}

function wayOf(value: object): Follow | undefined {
  try {
    // Collections are values, and most of what is returned is one of these or a plain object.
    if (Array.isArray(value)) return undefined;
    const { next, [Symbol.asyncIterator]: iterate } = value as Partial<AsyncIterableIterator<unknown>>;
    if (typeof iterate === 'function') {
      if (types.isGeneratorObject(value)) return followIterator;
      if (isReadableStream(value)) return followReadableStream;
      if (isNodeReadable(value)) return followNodeReadable;
      return isEventStream(value) ? followEventStream : followAsyncIterable;
    }
    if (typeof next !== 'function') return undefined;
    return typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function' ? followIterator : undefined;
  } catch {
    return undefined;
  }
}

const shared = new WeakMap<object, SharedReading>();

function isFollowed(value: object, follow: Follow, plan: Plan, reading: Reading): boolean {
  const known = shared.get(value);
  if (known !== undefined) return known.add(plan, reading);
  const first = new SharedReading();
  first.add(plan, reading);
  if (!Object.isExtensible(value) || !follow(value, first)) return false;
  shared.set(value, first);
  return true;
}

/** An iteration is followed by whichever of its ways it begins; a second one for the same calls is as without us. */
function followAsyncIterable(iterable: object, reading: SharedReading): boolean {
  const isIterator = followIterator(iterable, reading);
  const isReplaced = replaceOwn(iterable, Symbol.asyncIterator, (iterate) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      if (reading.isStepping) return Reflect.apply(iterate, this, args);
      let iterator: unknown;
      try {
        iterator = reading.step(iterate, this, args);
      } catch (thrown) {
        for (const each of reading.takeAll().values()) each.fail(thrown);
        throw thrown;
      }
      if (typeof iterator !== 'object' || iterator === null || (isIterator && iterator === this)) return iterator;
      for (const [plan, each] of reading.takeAll()) {
        if (isFollowed(iterator, followIterator, plan, each)) each.watch(iterator);
        else each.end();
      }
      return iterator;
    };
  });
  return isReplaced || isIterator;
}
