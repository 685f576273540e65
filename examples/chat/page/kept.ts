/** For later visits as well, or for as long as the tab is open. */
type Place = 'localStorage' | 'sessionStorage';

/** What was kept. A browser may keep nothing, and says so by throwing. */
export function kept(key: string, place: Place = 'localStorage'): string | undefined {
  try {
    return globalThis[place].getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keep(key: string, value: string, place: Place = 'localStorage'): void {
  try {
    globalThis[place].setItem(key, value);
  } catch {
    // Then it is for this visit alone.
  }
}

export function forget(key: string, place: Place = 'localStorage'): void {
  try {
    globalThis[place].removeItem(key);
  } catch {
    // Then nothing was kept.
  }
}
