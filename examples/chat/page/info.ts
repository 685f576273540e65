import { type Signal, signal } from '@preact/signals';
import { api } from './api.ts';
import type { Info } from './protocol.ts';

/** What the server says of itself; undefined before it has, and where it does not. */
export const info: Signal<Info | undefined> = signal(undefined);

export async function loadInfo(): Promise<void> {
  try {
    info.value = await api.info();
  } catch {
    // The page works without it.
  }
}
