import fc from 'fast-check';
import { cases, seed } from './campaign.ts';

// Also for the properties of test files that say nothing of this.
fc.configureGlobal({ seed: seed(), numRuns: cases(100) });
