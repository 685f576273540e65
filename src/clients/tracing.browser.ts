import type * as tracing from './tracing.ts';

// Browsers have no current run, so calls are not recorded.

export const tracedCall: typeof tracing.tracedCall = (_, call) => call(undefined);

export const tracedStream: typeof tracing.tracedStream = async (_name, _inputs, open) => open(undefined);

export const traceHeaders: typeof tracing.traceHeaders = () => ({});

export const recordPlace: typeof tracing.recordPlace = () => {};
