import { type Signal, signal } from '@preact/signals';

/** Whether the threads are shown where they have no place of their own. */
export const isDrawerOpen: Signal<boolean> = signal(false);
export const isHistoryOpen: Signal<boolean> = signal(false);
