import { afterEach, vi } from 'vitest';

/** After each test, globals, variables, methods and timers that `vi` has replaced are the original ones. */
afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  vi.useRealTimers();
});
