// Whatever it is given, a traced function does what the bare one does.
import { types } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { anything as maker } from '../base/hostile.ts';
import { cases } from '../support/campaign.ts';
import { logLines } from '../support/log-lines.ts';
import { record } from './recorder.ts';

const RUNS = { numRuns: cases(300) };
const explode = (): never => {
  throw new Error('boom');
};

/** Callbacks of the options: honest, broken, late, or out to change what they are given. */
const callback = fc.oneof(
  fc.constant(undefined),
  maker.map((make) => () => make()),
  maker.map((make) => () => {
    throw make();
  }),
  maker.map((make) => () => Promise.reject(make())),
  fc.constant((given: unknown) => {
    // Replacing the elements of a hostile array of 2^32 - 1 elements would take minutes.
    if (Array.isArray(given) && given.length < 1_000) given.splice(0, given.length, 'replaced');
    return {};
  }),
);

const options: fc.Arbitrary<object> = fc.record({ inputs: callback, outputs: callback, aggregate: callback });

interface Outcome {
  readonly kind: 'returned' | 'threw';
  readonly value: unknown;
}

function outcomeOf(call: () => unknown): Outcome {
  try {
    return { kind: 'returned', value: call() };
  } catch (thrown) {
    return { kind: 'threw', value: thrown };
  }
}

async function settledOutcomeOf(call: () => unknown): Promise<Outcome> {
  try {
    return { kind: 'returned', value: await call() };
  } catch (thrown) {
    return { kind: 'threw', value: thrown };
  }
}

/** Compares by identity, except native promises, which a wrapper may replace. */
function same(traced: Outcome, bare: Outcome): boolean {
  if (traced.kind !== bare.kind) return false;
  if (Object.is(traced.value, bare.value)) return true;
  if (types.isPromise(bare.value)) return types.isPromise(traced.value);
  return isNew(bare.value) && String(traced.value) === String(bare.value);
}

/** Revoked proxies and the throwing values of `maker` throw a new error each time. */
function isNew(error: unknown): boolean {
  return types.isNativeError(error) && /(?:on a proxy that has been revoked|^hostile)$/.test(error.message);
}

const PENDING: Outcome = { kind: 'returned', value: 'pending' };

/** The chunks that a reader gets in one of several ways, and how it ended. */
async function consumed(stream: ReadableStream<{ chunk: unknown }>, way: string): Promise<Outcome[]> {
  const seen: Outcome[] = [];
  const see = ({ chunk }: { chunk: unknown }) => void seen.push({ kind: 'returned', value: chunk });
  const iterate = async (from: ReadableStream<{ chunk: unknown }>, most = Number.POSITIVE_INFINITY) => {
    for await (const each of from as unknown as AsyncIterable<{ chunk: unknown }>) {
      see(each);
      if (seen.length >= most) break;
    }
  };
  const read = async (): Promise<void> => {
    const reader = stream.getReader();
    for (let step = await reader.read(); !step.done; step = await reader.read()) see(step.value);
  };
  const ways: Record<string, () => Promise<unknown>> = {
    read,
    iterate: () => iterate(stream),
    break: () => iterate(stream, 1),
    cancel: () => stream.cancel('enough'),
    tee: () => Promise.all(stream.tee().map((branch) => iterate(branch))),
    pipe: () => stream.pipeTo(new WritableStream({ write: see })),
    through: () => iterate(stream.pipeThrough(new TransformStream())),
  };
  const { kind, value } = await settledOutcomeOf(ways[way] as () => Promise<unknown>);
  seen.push(kind === 'threw' ? { kind, value } : { kind, value: 'done' });
  return seen;
}

describe('a traced function does what the bare one does, with', () => {
  test('any arguments, `this`, result, error and callbacks', () => {
    logLines();
    const recorder = record();
    const given = fc.tuple(fc.array(maker, { maxLength: 3 }), maker, maker, fc.boolean(), options);
    const property = fc.property(given, ([makeArgs, makeSelf, makeResult, fails, options]) => {
      recorder.clear();
      const [args, self, result] = [makeArgs.map((make) => make()), makeSelf(), makeResult()];
      const seen: unknown[][] = [];
      function fn(this: unknown, ...given: unknown[]): unknown {
        seen.push([this, ...given]);
        if (fails) throw result;
        return result;
      }
      const bare = outcomeOf(() => Reflect.apply(fn, self, args));
      const traced = outcomeOf(() => Reflect.apply(traceable(fn, options), self, args));
      expect(same(traced, bare)).toBe(true);
      expect(seen.map((list) => list.length)).toEqual([args.length + 1, args.length + 1]);
      expect(seen[1]?.every((each, index) => Object.is(each, seen[0]?.[index]))).toBe(true);
      expect(recorder.runs).toHaveLength(1);
    });
    fc.assert(property, RUNS);
  });

  test('any promise and callbacks', async () => {
    logLines();
    const recorder = record();
    const given = fc.tuple(maker, maker, fc.boolean(), options);
    const property = fc.asyncProperty(given, async ([makeArg, makeResult, fails, options]) => {
      recorder.clear();
      const result = makeResult();
      const fn = async (_arg: unknown) => {
        await undefined;
        if (fails) throw result;
        return result;
      };
      const bare = await settledOutcomeOf(() => fn(makeArg()));
      const traced = await settledOutcomeOf(() => traceable(fn, options)(makeArg()));
      expect(same(traced, bare)).toBe(true);
      expect(recorder.runs).toHaveLength(1);
      // One that a generator was promised to ends with the generator.
      if (fails || !types.isGeneratorObject(result)) expect(recorder.runs[0]).toHaveProperty('end_time');
    });
    await fc.assert(property, RUNS);
  });

  test('any steps of a generator of either kind and callbacks', async () => {
    logLines();
    const recorder = record();
    const step = fc.tuple(fc.constantFrom('next', 'next', 'next', 'return', 'throw'), maker);
    const given = fc.tuple(
      fc.boolean(),
      fc.array(maker, { maxLength: 4 }),
      maker,
      fc.array(step, { maxLength: 6 }),
      options,
    );
    const property = fc.asyncProperty(given, async ([isAsync, makeChunks, makeEnd, steps, options]) => {
      recorder.clear();
      // In objects, as an asynchronous generator would await a promise.
      const [chunks, end] = [makeChunks.map((make) => ({ chunk: make() })), { end: makeEnd() }];
      const sent = steps.map(([method, make]) => [method as 'next' | 'return' | 'throw', { sent: make() }] as const);
      const received: [unknown[], unknown[]] = [[], []];
      const makeGenerator = (got: unknown[]) => {
        const body = function* (): Generator {
          for (const chunk of chunks) {
            try {
              got.push(yield chunk);
            } catch (caught) {
              got.push(caught);
            } finally {
              yield end;
            }
          }
          if (steps.length > 3) throw end;
          return end;
        };
        if (!isAsync) return body;
        return async function* () {
          return yield* body();
        };
      };
      const walk = async (generator: Generator | AsyncGenerator): Promise<unknown[]> => {
        const seen: unknown[] = [];
        for (const [method, value] of sent) {
          const { kind, value: result } = await settledOutcomeOf(() => generator[method](value));
          const { done, value: yielded } = result as { done?: boolean; value?: unknown };
          seen.push(kind, ...(kind === 'threw' ? [result] : [done, yielded]));
        }
        return seen;
      };
      const bare = await walk(makeGenerator(received[0])());
      const traced = await walk(traceable(makeGenerator(received[1]), options as object)() as Generator);
      for (const [one, other] of [[traced, bare], received] as const) {
        expect(one?.length).toBe(other?.length);
        expect(one?.every((each, index) => Object.is(each, other?.[index]))).toBe(true);
      }
      expect(recorder.runs).toHaveLength(steps[0]?.[0] === 'next' ? 1 : 0);
    });
    await fc.assert(property, RUNS);
  });

  test('any steps of an iterator of ones own, whatever it answers with, and callbacks', async () => {
    logLines();
    const recorder = record();
    const never = new Promise(() => {});
    /** What the source answers with: both programs get the same objects, so that they can be compared by identity. */
    const answer = fc.tuple(
      fc.constantFrom('returns', 'resolves', 'rejects', 'throws'),
      fc.oneof(
        maker.map((make) => () => ({ done: false, value: make() })),
        maker,
        fc.constantFrom(
          () => ({ done: true, value: 'end' }),
          () => never,
          () => Object.defineProperty({ done: false }, 'value', { get: explode }),
        ),
      ),
    );
    const step = fc.tuple(fc.constantFrom('iterate', 'next', 'next', 'next', 'return', 'throw'), fc.nat(7));
    const given = fc.tuple(fc.array(answer, { minLength: 1, maxLength: 8 }), fc.array(step, { maxLength: 6 }), options);
    const property = fc.asyncProperty(given, async ([answers, steps, options]) => {
      recorder.clear();
      const made = answers.map(([way, make]) => ({ way, value: make() }));
      const makeSource = (effects: string[]) => {
        const respond = (name: string) => (at: number) => {
          effects.push(name);
          const { way, value } = made[at % made.length] as { way: string; value: unknown };
          if (way === 'throws') throw value;
          if (way === 'returns') return value;
          return way === 'resolves' ? Promise.resolve(value) : Promise.reject(value);
        };
        const source = { next: respond('next'), return: respond('return'), throw: respond('throw') };
        return Object.assign(source, {
          [Symbol.asyncIterator]() {
            effects.push('iterate');
            return source;
          },
        });
      };
      const walk = async (source: ReturnType<typeof makeSource>) => {
        const seen: Outcome[] = [];
        for (const [name, at] of steps) {
          const call = () =>
            name === 'iterate' ? source[Symbol.asyncIterator]() === source : source[name as 'next'](at);
          seen.push(
            await Promise.race([settledOutcomeOf(call), new Promise<Outcome>((r) => setImmediate(r, PENDING))]),
          );
        }
        return seen;
      };
      const effects: [string[], string[]] = [[], []];
      const source = makeSource(effects[1]);
      const bare = await walk(makeSource(effects[0]));
      const handed = traceable(() => source, options as object)();
      expect(handed).toBe(source);
      const traced = await walk(handed);
      expect(traced.every((each, at) => same(each, bare[at] as Outcome))).toBe(true);
      expect(effects[1]).toEqual(effects[0]);
      expect(recorder.runs).toHaveLength(1);
    });
    await fc.assert(property, RUNS);
  });

  test('any chunks of a web stream, however it is read, and callbacks', async () => {
    logLines();
    const recorder = record();
    const ways = fc.constantFrom('read', 'iterate', 'break', 'cancel', 'tee', 'pipe', 'through');
    const given = fc.tuple(fc.array(maker, { maxLength: 4 }), fc.option(maker), ways, options);
    const property = fc.asyncProperty(given, async ([makeChunks, makeError, way, options]) => {
      recorder.clear();
      const [chunks, error] = [makeChunks.map((make) => make()), makeError?.()];
      const make = () => {
        const left = [...chunks];
        return new ReadableStream({
          pull(controller) {
            if (left.length > 0) controller.enqueue({ chunk: left.shift() });
            else if (makeError !== null) controller.error(error);
            else controller.close();
          },
        });
      };
      const bare = await consumed(make(), way);
      const traced = await consumed(traceable(make, options as object)(), way);
      expect(traced.length).toBe(bare.length);
      expect(traced.every((each, at) => same(each, bare[at] as Outcome))).toBe(true);
      expect(recorder.runs).toHaveLength(1);
      expect(recorder.runs[0]).toHaveProperty('end_time');
    });
    await fc.assert(property, RUNS);
  });

  test('any function and options, which never make wrapping it fail', () => {
    logLines();
    const wrap = traceable as (fn: unknown, options?: unknown) => unknown;
    const property = fc.property(maker, maker, (makeFn, makeOptions) => {
      const fn = makeFn();
      const wrapped = wrap(fn, makeOptions());
      if (typeof fn !== 'function') expect(Object.is(wrapped, fn)).toBe(true);
    });
    fc.assert(property, RUNS);
  });
});
