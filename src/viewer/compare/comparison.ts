import { type Signal, signal } from '@preact/signals';
import { go } from '../data/navigation.ts';

/** The run that the next one is compared with. */
export const compared: Signal<{ readonly id: string; readonly name: string } | undefined> = signal(undefined);

/** The first run of two is kept in mind; with the second the two are shown. */
export function compare(id: string, name: string): void {
  const base = compared.value;
  if (base === undefined) compared.value = { id, name };
  else if (base.id === id) compared.value = undefined;
  else {
    compared.value = undefined;
    go({ view: 'compare', base: base.id, run: id, trace: undefined });
  }
}
