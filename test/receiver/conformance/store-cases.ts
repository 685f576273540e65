import { cacheCases } from './cache-cases.ts';
import { callCases } from './call-cases.ts';
import { deletionCases } from './deletion-cases.ts';
import { feedbackCases } from './feedback-cases.ts';
import { ingestCases } from './ingest-cases.ts';
import { projectCases } from './project-cases.ts';
import { queryCases } from './query-cases.ts';
import { scopeCases } from './scope-cases.ts';
import { sumCases } from './sum-cases.ts';
import { summaryCases } from './summary-cases.ts';
import type { StoreCase } from './support.ts';
import { threadCases } from './thread-cases.ts';
import { wordCases } from './word-cases.ts';

export type { StoreCase } from './support.ts';

/** Test cases for the rules that every store must follow. Each case needs tenants of its own. */
export const storeCases: readonly StoreCase[] = [
  // First, because searches in SQLite read all runs that are not indexed yet.
  ...wordCases,
  ...ingestCases,
  ...queryCases,
  ...scopeCases,
  ...projectCases,
  ...sumCases,
  ...callCases,
  ...cacheCases,
  ...summaryCases,
  ...threadCases,
  ...feedbackCases,
  ...deletionCases,
];
