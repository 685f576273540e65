import { effect, type Signal, signal } from '@preact/signals';

/** A signal whose value survives a reload. A browser that refuses to store anything keeps it until the page is closed. */
export function storedSignal<Value>(
  name: string,
  initial: Value,
  storage: 'localStorage' | 'sessionStorage' = 'localStorage',
): Signal<Value> {
  const stored = signal(initial);
  try {
    stored.value = JSON.parse(globalThis[storage].getItem(name) ?? 'null') ?? initial;
  } catch {
    // The storage is not available, or another program stored the value.
  }
  effect(() => {
    const { value } = stored;
    try {
      if (value === initial) globalThis[storage].removeItem(name);
      else globalThis[storage].setItem(name, JSON.stringify(value));
    } catch {
      // Nothing can be stored.
    }
  });
  return stored;
}
