import { shared } from './shared.ts';

/** Options objects that the library itself passed to `fetch`. These calls are never recorded. */
export const ownRequests: WeakSet<object> = shared('ownRequests', () => new WeakSet());
