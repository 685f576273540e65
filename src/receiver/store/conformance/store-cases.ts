import { ingestCases } from './ingest-cases.ts';
import { queryCases } from './query-cases.ts';
import { sumCases } from './sum-cases.ts';
import type { StoreCase } from './support.ts';

export type { StoreCase } from './support.ts';

/** The rules that every store follows. Each case needs a new, empty store. */
export const storeCases: readonly StoreCase[] = [...ingestCases, ...queryCases, ...sumCases];
