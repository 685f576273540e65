import { beforeAll } from 'vitest';
import { installSink } from '../../src/run/sink.ts';

// Test files share workers. Each starts with tracing off, whatever the file before it has installed.
beforeAll(() => installSink(undefined));
