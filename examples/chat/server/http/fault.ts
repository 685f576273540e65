import type { ErrorHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { UnknownCheckpointError } from '../protocol/thread-state.ts';
import { isAway, reasonOf, STORE_AWAY } from '../storage/store-error.ts';
import { InvalidBodyError } from './bodies.ts';

/** Of an answer of status 503. */
export const RETRY_LATER: Readonly<Record<string, string>> = { 'retry-after': '5' };

/** What a request is refused with. Clients of the protocol read `message`, those of the interface `detail`. */
export interface Fault {
  readonly error: string;
  readonly message: string;
  readonly detail: string;
}

export function fault(error: string, message: string): Fault {
  return { error, message, detail: message };
}

/** Answers a request that a handler has thrown at. What nobody has foreseen is told to the log, and not to the client. */
export function faultAnswer(log: (line: string) => void): ErrorHandler {
  return (error, context) => {
    if (error instanceof InvalidBodyError) return context.json({ detail: error.detail }, 422);
    if (error instanceof UnknownCheckpointError) return context.json(fault('no_such_checkpoint', error.message), 404);
    if (error instanceof HTTPException) return context.json(fault('bad_request', error.message), error.status);
    if (isAway(error)) {
      log(`${context.req.method} ${context.req.path}: the store does not answer: ${reasonOf(error)}`);
      return context.json(fault('unavailable', STORE_AWAY), 503, RETRY_LATER);
    }
    log(`${context.req.method} ${context.req.path}: ${error.stack ?? error.message}`);
    return context.json(fault('internal', 'The request failed; the log of the server says why.'), 500);
  };
}
