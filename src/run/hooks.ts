import { guard, reportFailure } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { untraced } from './context.ts';
import type { HookedRun, RunHooks } from './run-hooks.ts';

/** Returns the hooks of a run in the order of their calls, or undefined if there are none. */
export function hooksOf(configured: RunHooks | undefined, own: RunHooks): readonly RunHooks[] | undefined {
  if (own.onStart === undefined && own.onEnd === undefined) return configured && [configured];
  return configured === undefined ? [own] : [configured, own];
}

export function callHooks(name: keyof RunHooks, hooks: readonly RunHooks[], run: HookedRun): void {
  for (const { [name]: hook } of hooks) {
    if (hook === undefined) continue;
    guard(name, () => {
      const result = untraced(hook, run);
      if (types.isPromise(result)) result.catch((error: unknown) => reportFailure(name, error));
    });
  }
}
