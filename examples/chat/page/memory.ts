type Place = 'localStorage' | 'sessionStorage';

// A browser may refuse to store anything, and then throws.

export function recall(name: string, place: Place = 'localStorage'): string | undefined {
  try {
    return globalThis[place].getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

export function remember(name: string, value: string, place: Place = 'localStorage'): void {
  try {
    globalThis[place].setItem(name, value);
  } catch {
    // The value is kept until the page is closed.
  }
}

export function forget(name: string, place: Place = 'localStorage'): void {
  try {
    globalThis[place].removeItem(name);
  } catch {
    // Nothing was stored.
  }
}
