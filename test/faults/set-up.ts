// Before every test of the suite: one that says that it proves a row of the table of faults fails when it asserts nothing.
import { beforeEach, expect } from 'vitest';
import { faultOf } from './proofs.mjs';

beforeEach(({ task }) => {
  if (faultOf(task.name) !== undefined) expect.hasAssertions();
});
