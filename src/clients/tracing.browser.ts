import type * as tracing from './tracing.ts';

// In browsers there is no current run, so calls are not recorded.

export const tracedCall: typeof tracing.tracedCall = (_, call) => call(undefined);

export const tracedStream: typeof tracing.tracedStream = async (_name, _inputs, open) => open(undefined);

export const traceHeaders: typeof tracing.traceHeaders = () => ({});

export const recordPlace: typeof tracing.recordPlace = () => {};

/**
 * Returns a UUIDv7. `crypto.randomUUID` creates ids of version 4, and is not available on pages loaded over plain HTTP.
 */
export const newThreadId: typeof tracing.newThreadId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const id = `${Date.now().toString(16).padStart(12, '0')}7${random.slice(0, 3)}8${random.slice(3, 18)}`;
  return id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
};
