import fc from 'fast-check';
import { expect, test } from 'vitest';
import { currentRun, traceable } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { forAllAsync } from '../support/campaign.ts';
import { record } from './recorder.ts';

type Kind = 'sync' | 'generator' | 'async' | 'asyncGenerator';

/** A traced function that calls its children one after the other. */
interface Caller {
  readonly kind: Kind;
  /** Whether the function handles the errors of its children. */
  readonly catches: boolean;
  readonly children: readonly Caller[];
}

const { tree } = fc.letrec<{ tree: Caller }>((tie) => ({
  tree: fc.record({
    kind: fc.constantFrom<Kind>('sync', 'generator', 'async', 'asyncGenerator'),
    catches: fc.boolean(),
    children: fc.oneof({ maxDepth: 4 }, fc.constant([]), fc.array(tie('tree'), { maxLength: 3 })),
  }),
}));

const late = { cause: { cause: { name: 'HeadersTimeoutError' } } };
const ERRORS: Readonly<Record<string, readonly [error: () => unknown, isAbort: boolean]>> = {
  abort: [() => AbortSignal.abort().reason, true],
  coded: [() => Object.assign(new Error('off'), { code: 'ABORT_ERR' }), true],
  timeout: [() => new DOMException('late', 'TimeoutError'), false],
  late: [() => Object.assign(new Error('off', late), { code: 'ABORT_ERR' }), false],
  wrapped: [() => new Error('failed', { cause: AbortSignal.abort().reason }), false],
  message: [() => new Error('Abort'), false],
};

/** Calls a tree of traced functions. In step `at`, a function throws. Returns the names of the runs that fail with it. */
async function callTree(root: Caller, at: number, error: unknown): Promise<readonly string[]> {
  let steps = 0;
  let failing: string[] = [];
  const step = (path: readonly Caller[], names: readonly string[]): void => {
    if (steps++ !== at) return;
    failing = names.slice(path.slice(0, -1).findLastIndex(({ catches }) => catches) + 1);
    throw error;
  };
  const drainSync = (result: unknown): void => {
    if (typeof result === 'object') for (const _ of result as Iterable<unknown>);
  };
  const drain = async (result: unknown): Promise<void> => {
    if (result === undefined || result instanceof Promise) await result;
    else for await (const _ of result as AsyncIterable<unknown>);
  };
  const make = (above: readonly Caller[], namesAbove: readonly string[], caller: Caller, index: number) => {
    const path = [...above, caller];
    const name = `${namesAbove.at(-1) ?? ''}${index}`;
    const names = [...namesAbove, name];
    const isSync = above.some(({ kind }) => kind === 'sync' || kind === 'generator');
    const kind = isSync ? ({ async: 'sync', asyncGenerator: 'generator' } as const)[caller.kind as 'async'] : undefined;
    const calls = caller.children.map((child, n) => () => make(path, names, child, n)());
    const bodies = {
      *generator() {
        step(path, names);
        for (const call of calls) {
          try {
            drainSync(call());
          } catch (thrown) {
            if (!caller.catches) throw thrown;
          }
          yield name;
          step(path, names);
        }
      },
      sync: () => void Array.from(bodies.generator()),
      async *asyncGenerator() {
        step(path, names);
        for (const call of calls) {
          try {
            await drain(call());
          } catch (thrown) {
            if (!caller.catches) throw thrown;
          }
          yield name;
          step(path, names);
        }
      },
      async: async () => {
        for await (const _ of bodies.asyncGenerator());
      },
    };
    return traceable(bodies[kind ?? caller.kind] as () => unknown, { name });
  };
  await Promise.resolve()
    .then(() => drain(make([], [], root, 0)()))
    .catch((thrown) => expect(thrown).toBe(error));
  return failing;
}

test.each(Object.entries(ERRORS))(
  'an error of the kind %s ends each run that fails with it in the same way',
  async (_, [error, isAbort]) => {
    await forAllAsync(100, [tree, fc.nat({ max: 12 })], async (root, at) => {
      const recorder = record();
      const failing = await callTree(root, at, error());
      const failed = recorder.runs.filter((run) => run.error !== undefined);
      const cancelled = recorder.runs.filter(({ extra }) => extra?.runspan_end_reason === 'cancelled');
      recorder.stop();
      expect(failed.map(({ name }) => name)).toEqual(failing);
      expect(cancelled).toEqual(isAbort ? failed : []);
    });
  },
);

test.each(['cancelled', undefined])('a timeout is the reason of a later abort only as its cause: %s', async (end) => {
  using recorder = recordRuns();
  const slow = traceable(() => {
    Object.assign(currentRun() ?? {}, { abortReason: new DOMException('late', 'TimeoutError') });
    return Promise.reject(new DOMException('off', 'AbortError'));
  });
  const work = async () => {
    const cause: unknown = await slow().catch((error: unknown) => error);
    throw Object.assign(new Error('off', end ? {} : { cause }), { name: 'AbortError' });
  };
  await expect(traceable(work, { name: 'work' })()).rejects.toThrow('off');
  expect(recorder.run('work').extra?.runspan_end_reason).toBe(end);
});
