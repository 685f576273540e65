// Imported for its effect: `expect` knows the matchers of the test kit, at run time and for the compiler.
import { expect } from 'vitest';
import { matchers, type RunMatchers } from '../../src/testing.ts';

declare module 'vitest' {
  interface Matchers<T> extends RunMatchers {}
}

expect.extend(matchers);
