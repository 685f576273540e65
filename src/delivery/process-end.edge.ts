import type * as processEnd from './process-end.ts';

// Edge runtimes do not report the end of a process, so each request flushes its own runs.

export const flushAtEnd: typeof processEnd.flushAtEnd = () => {};

export const forgetAtEnd: typeof processEnd.forgetAtEnd = () => {};
