import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Keeps the current run in a variable, which is enough for one turn at a time. `leave` restores the parent after the
 * call.
 */
export function variableContext() {
  let current;
  return {
    current: () => current,
    enter(run, fn, input) {
      const parent = current;
      current = run;
      try {
        return fn(input);
      } finally {
        current = parent;
      }
    },
    leave(parent) {
      current = parent;
    },
  };
}

/** Keeps the current run in an AsyncLocalStorage, for overlapping turns. */
export function storageContext() {
  const storage = new AsyncLocalStorage();
  return { current: () => storage.getStore(), enter: (run, fn, input) => storage.run(run, fn, input), leave() {} };
}
