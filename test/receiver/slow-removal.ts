import { STORE_METHODS } from '#src/receiver/store/store.ts';
import type { Store } from '#src/receiver.ts';

/** Returns a store whose removals report one run, and then wait until they are cancelled or `opened` settles. */
export function slowed(store: Store, opened: Promise<void>): Store {
  const remove: Store['remove'] = async (scope, target, options = {}) => {
    const { signal, onProgress } = options;
    onProgress?.({ runs: 1, traces: 1 });
    const aborted = new Promise((resolve) => signal?.addEventListener('abort', resolve));
    await Promise.race([opened, aborted]);
    return signal?.aborted ? { runs: 1, traces: 1 } : store.remove(scope, target, options);
  };
  const methods = STORE_METHODS.map((name) => [name, (store[name] as () => unknown).bind(store)]);
  return { ...Object.fromEntries(methods), remove };
}
