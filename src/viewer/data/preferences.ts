import { type Signal, signal } from '@preact/signals';

type Theme = 'system' | 'light' | 'dark';

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'dark', dark: 'light', light: 'system' };

export const theme: Signal<Theme> = preference('theme', (text) =>
  text === 'dark' || text === 'light' ? text : 'system',
);
theme.subscribe((value) => {
  if (value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
});

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}

export const isMarkdown: Signal<boolean> = preference('markdown', (text) => text !== 'false');

/** Whether a trace shows the steps and the metadata that frameworks add for themselves. */
export const isInternalShown: Signal<boolean> = preference('internal', (text) => text === 'true');

export function toggle(option: Signal<boolean>): void {
  option.value = !option.value;
}

/** Width of the tree of a trace, in percent. */
export const split: Signal<number> = preference('split', (text) => Number(text) || 54);

/** Ids of the columns that each list shows, separated by commas. If the text is empty, the default columns are shown. */
export const columnIds: Readonly<Record<'traces' | 'runs', Signal<string>>> = {
  traces: preference('columns.traces', (text) => text ?? ''),
  runs: preference('columns.runs', (text) => text ?? ''),
};

/**
 * Returns a signal whose value is stored in `localStorage`, and follows changes in other tabs. If the browser blocks
 * storage, the value is lost when the page closes.
 */
export function preference<Value extends string | number | boolean>(
  name: string,
  parse: (text: string | undefined) => Value,
): Signal<Value> {
  const key = `runspan.${name}`;
  let text: string | undefined;
  try {
    text = localStorage.getItem(key) ?? undefined;
  } catch {
    // The browser blocks storage.
  }
  const value = signal(parse(text));
  value.subscribe((next) => {
    try {
      localStorage.setItem(key, `${next}`);
    } catch {
      // The browser blocks storage.
    }
  });
  addEventListener('storage', ({ key: changedKey, newValue }) => {
    if (changedKey === key) value.value = parse(newValue ?? undefined);
  });
  return value;
}
