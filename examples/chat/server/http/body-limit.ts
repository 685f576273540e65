import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { fault } from './fault.ts';

const BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Refuses bodies that are too large, whatever they are for. */
export const limitedBodies: MiddlewareHandler = bodyLimit({ maxSize: BODY_BYTES_MAX, onError: tooLarge });

/** What is left of the body is not read, so that nothing else can come over its connection. */
function tooLarge(context: Context): Response {
  return context.json(fault('too_large', `A body may have ${BODY_BYTES_MAX} bytes.`), 413, { connection: 'close' });
}
