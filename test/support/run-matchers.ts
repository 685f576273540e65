// Adds the matcher of `runspan/testing` to `expect`.
import { expect } from 'vitest';
import { matchers, type RunMatchers } from '#src/testing.ts';

declare module 'vitest' {
  interface Matchers<T> extends RunMatchers {}
}

expect.extend(matchers);
