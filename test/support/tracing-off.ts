import { beforeAll } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { installSink } from '../../src/run/sink.ts';

// Test files share workers. Each starts with tracing off and with no warning logged, whatever the file before it did.
beforeAll(() => {
  installSink(undefined);
  diagnostics.forgetPlaces();
});
