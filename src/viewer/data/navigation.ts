import { type Signal, signal } from '@preact/signals';
import { type Address, readAddress, writeAddress } from './address.ts';

const opened = readAddress(location.search);

/** Where the page is. */
export const address: Signal<Address> = signal(opened);

addEventListener('popstate', () => {
  address.value = readAddress(location.search);
});

/** Goes on from here. What only refines what is seen takes the place of the entry in the history. */
export function go(change: Partial<Address>, { replace = false }: { replace?: boolean } = {}): void {
  const next = { ...address.peek(), ...change };
  const url = writeAddress(next);
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  address.value = next;
}

/** Whether anything but the view that the page was opened with has been seen. */
export function hasMoved(): boolean {
  return address.peek() !== opened;
}

/** The URL of what `go` would show, for links that may be opened in another tab. */
export function linkTo(change: Partial<Address>): string {
  return writeAddress({ ...address.value, ...change });
}

/** Follows a link in the page, unless the reader wants it elsewhere. */
export function follow(event: MouseEvent, change: Partial<Address>): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
  event.preventDefault();
  go(change);
}
