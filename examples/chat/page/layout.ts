import { type Signal, signal } from '@preact/signals';

/** Whether the threads are shown where they have no place of their own. */
export const isDrawerOpen: Signal<boolean> = signal(false);
export const isHistoryOpen: Signal<boolean> = signal(false);

/** The focus goes back to what opened it. */
export function closeHistory(): void {
  isHistoryOpen.value = false;
  document.querySelector<HTMLElement>('[aria-controls=history]')?.focus();
}
