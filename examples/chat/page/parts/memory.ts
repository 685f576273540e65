import { effect, type Signal, signal } from '@preact/signals';

/**
 * Returns a signal whose value survives a reload. If the browser blocks storage, the value lasts until the page is
 * closed.
 */
export function storedSignal<Value>(
  name: string,
  initial: Value,
  storage: 'localStorage' | 'sessionStorage' = 'localStorage',
): Signal<Value> {
  const stored = signal(initial);
  try {
    stored.value = JSON.parse(globalThis[storage].getItem(name) ?? 'null') ?? initial;
  } catch {
    // Storage is blocked, or the stored value comes from another program.
  }
  effect(() => {
    const { value } = stored;
    try {
      if (value === initial) globalThis[storage].removeItem(name);
      else globalThis[storage].setItem(name, JSON.stringify(value));
    } catch {
      // Storage is blocked or full.
    }
  });
  return stored;
}
