import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The current run in a variable, which stands for a context: only a program of one turn at a time can afford it. `enter`
 * calls the function, whose first part sees the run; `leave` is called when it is done, for what comes after it.
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

/** The same for turns that overlap, which nothing cheaper can tell apart. */
export function storageContext() {
  const storage = new AsyncLocalStorage();
  return { current: () => storage.getStore(), enter: (run, fn, input) => storage.run(run, fn, input), leave() {} };
}
