import { type Signal, signal } from '@preact/signals';
import { type Address, readAddress, writeAddress } from './address.ts';
import { nameOfRange, rangeIn, type StartRange, withRange } from './time-range.ts';
import { saved } from './trace-file.ts';

const initial = readAddress(location.search);

export const address: Signal<Address> = signal(initial);

export const compared: Signal<{ readonly id: string; readonly name: string } | undefined> = signal(undefined);

addEventListener('popstate', () => {
  address.value = readAddress(location.search);
});

/** Changes the address according to the rules in `changed`. Replaces the current history entry if `replace` is set. */
export function go(change: Partial<Address>, { replace = false }: { replace?: boolean } = {}): void {
  const next = changed(address.peek(), change);
  // Browsers do not let a page change the path of a `file:` URL.
  if (saved !== undefined) {
    address.value = next;
    return;
  }
  const url = writeAddress(next);
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(history.state, '', url);
  else history.pushState(INSIDE, '', url);
  address.value = next;
}

/** State of a history entry that comes after another entry of this page. */
const INSIDE = 'inside';

/** Returns to the previous view, or to the list if this view was opened directly. */
export function back(): void {
  if (history.state === INSIDE) history.back();
  else go({ view: 'traces' });
}

/** Returns whether the address has changed since the page was opened. */
export function hasMoved(): boolean {
  return address.peek() !== initial;
}

export function linkTo(change: Partial<Address>): string {
  return writeAddress(changed(address.value, change));
}

/** Selects a run for a comparison. The second call opens the comparison, or cancels if both runs are the same. */
export function compare(id: string, name: string): void {
  const base = compared.value;
  compared.value = base === undefined ? { id, name } : undefined;
  if (base !== undefined && base.id !== id) go({ view: 'compare', base: base.id, run: id });
}

/** The range with which the statistics open, because statistics of all time may take long. */
const STATISTICS_RANGE: StartRange = { since: '24h' };

/**
 * Applies a change to an address. A new view closes the thread, the trace and the comparison. A new trace deselects the
 * run. The statistics open with a time range, which ends with them.
 */
function changed(address: Address, change: Partial<Address>): Address {
  const { view = address.view, filter = filterFor(view, address) } = change;
  const closed = 'view' in change ? { thread: undefined, trace: undefined, run: undefined, base: undefined } : {};
  const deselected = 'trace' in change ? { run: undefined } : {};
  return { ...address, ...closed, ...deselected, ...change, filter };
}

function filterFor(view: Address['view'], address: Address): string {
  const { filter } = address;
  if (view === address.view) return filter;
  const range = nameOfRange(rangeIn(filter));
  if (view === 'statistics' && range === nameOfRange({})) return withRange(filter, STATISTICS_RANGE);
  if (address.view === 'statistics' && range === nameOfRange(STATISTICS_RANGE)) return withRange(filter, {});
  return filter;
}
