import type { ErrorHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { STORE_UNAVAILABLE } from '../runs/commands.ts';
import { StateUpdateError, UnknownCheckpointError } from '../runs/thread-states.ts';
import { isUnavailable, reasonOf } from '../storage/database.ts';
import { InvalidRequestError } from './requests.ts';

export const RETRY_LATER: Readonly<Record<string, string>> = { 'retry-after': '5' };

/** The body of an error response. Clients of the protocol read `message`, clients of the interface read `detail`. */
export function errorBody(error: string, message: string): { error: string; message: string; detail: string } {
  return { error, message, detail: message };
}

/** Responds to a request whose handler threw. Unexpected errors are logged, and the client learns nothing about them. */
export function errorResponse(log: (line: string) => void): ErrorHandler {
  return (error, context) => {
    if (error instanceof InvalidRequestError)
      return context.json({ detail: error.detail, message: error.message }, 422);
    if (error instanceof StateUpdateError) return context.json(errorBody('invalid_state_update', error.message), 422);
    if (error instanceof UnknownCheckpointError)
      return context.json(errorBody('no_such_checkpoint', error.message), 404);
    if (error instanceof HTTPException) return context.json(errorBody('bad_request', error.message), error.status);
    const request = `${context.req.method} ${context.req.path}`;
    if (isUnavailable(error)) {
      log(`${request}: the store does not respond: ${reasonOf(error)}`);
      return context.json(errorBody('unavailable', STORE_UNAVAILABLE), 503, RETRY_LATER);
    }
    log(`${request}: ${error.stack ?? error.message}`);
    return context.json(errorBody('internal', 'The request failed. See the log of the server.'), 500);
  };
}
