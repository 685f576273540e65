import fc from 'fast-check';
import { seed } from './campaign.ts';

/** Also test files that import only fast-check have the cases of their seed. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: seed() });
