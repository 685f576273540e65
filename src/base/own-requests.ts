import { shared } from './shared.ts';

/** Options objects of the library's own `fetch` calls, which are never recorded. */
export const ownRequests: WeakSet<object> = shared('ownRequests', () => new WeakSet());
