import fc from 'fast-check';
import { cases, seed } from './campaign.ts';

// Also for properties of test files that import only fast-check.
fc.configureGlobal({ seed: seed(), numRuns: cases(100) });
