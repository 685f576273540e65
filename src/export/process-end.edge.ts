import type * as processEnd from './process-end.ts';

// These runtimes do not report the end of a process. Each request flushes its own runs.

export const flushAtEnd: typeof processEnd.flushAtEnd = () => {};

export const forgetAtEnd: typeof processEnd.forgetAtEnd = () => {};
