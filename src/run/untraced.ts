import { callReplacementsBy } from '../payload/redact.ts';
import { contextTo, enterContext, type RunContext } from './context.ts';
import type { RunSink } from './sink.ts';

/** Stands where tracing is off: takes nothing, counts nothing. */
export const offSink: RunSink = {
  capture: {
    project: 'default',
    hideInputs: true,
    hideOutputs: true,
    payload: { depth: 1, width: 1, nodes: 1, bytes: 1 },
    attachmentBytes: 0,
    sampling: undefined,
    streamIdleMs: 1,
  },
  isOff: true,
  start: () => false,
  end: () => {},
  skip: () => {},
  flush: async () => ({ ok: true, pending: 0 }),
  close: async () => ({ ok: true, pending: 0 }),
};

/** What names an exporter of its own is left out by sampling. */
const nowhere: RunContext = Object.freeze({ ...contextTo(offSink, undefined), sampled: false });

/**
 * Calls a function that serves tracing alone, with tracing off for it and all that it starts: a run of a callback would call
 * that again when it is sampled, redacted or dropped, without end.
 */
export function untraced<Args extends unknown[], Result>(fn: (...args: Args) => Result, ...args: Args): Result {
  return enterContext(nowhere, fn, ...args);
}

callReplacementsBy(untraced);
