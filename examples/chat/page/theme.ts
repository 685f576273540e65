import { type Signal, signal } from '@preact/signals';
import { keep, kept } from './kept.ts';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'chat.theme';
const NEXT: Readonly<Record<Theme, Theme>> = { system: 'dark', dark: 'light', light: 'system' };

export const theme: Signal<Theme> = signal(themeOf(kept(KEY)));

theme.subscribe((value) => {
  if (value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  keep(KEY, value);
});

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}

function themeOf(text: string | undefined): Theme {
  return text === 'dark' || text === 'light' ? text : 'system';
}
