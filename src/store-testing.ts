export { RunspanError } from './base/errors.ts';
export { type StoreCase, storeCases } from './receiver/store/conformance/store-cases.ts';
export type { Store } from './receiver/store/store.ts';
