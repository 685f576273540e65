import { type Signal, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'runspan.theme';
const NEXT: Readonly<Record<Theme, Theme>> = { system: 'dark', dark: 'light', light: 'system' };

export const theme: Signal<Theme> = signal(
  kept(KEY) === 'dark' || kept(KEY) === 'light' ? (kept(KEY) as Theme) : 'system',
);

theme.subscribe((value) => {
  if (value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  keep(KEY, value);
});

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}

/** What was kept for the next visit. A browser may keep nothing, and says so by throwing. */
export function kept(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Then it is for this visit alone.
  }
}
