import { shared } from './shared.ts';

/** The options of the library's own calls of `fetch`, which are never recorded. */
export const ownRequests: WeakSet<object> = shared('ownRequests', () => new WeakSet());
