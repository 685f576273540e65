import { beforeAll } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { installSink } from '#src/run/sink.ts';

// Test files share workers. Before each file, turns tracing off and allows all log lines again.
beforeAll(() => {
  installSink(undefined);
  diagnostics.forgetPlaces();
});
