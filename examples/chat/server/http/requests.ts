import type { Context } from 'hono';
import { z } from 'zod';
import { RequestError } from '../errors.ts';

const NAME_CHARS_MAX = 512;

const record = z.record(z.string(), z.unknown());
// NUL is rejected, because PostgreSQL cannot store it.
const checkpointName = z
  .string()
  .max(NAME_CHARS_MAX)
  .refine((name) => !name.includes('\0'), 'Expected text without NUL');
const checkpointId = checkpointName.min(1);
const checkpoint = z.looseObject({ checkpoint_id: checkpointId, checkpoint_ns: checkpointName.optional() });
const strategy = z.enum(['reject', 'interrupt', 'enqueue', 'rollback']).nullish();
const existence = z.enum(['create', 'reject']).nullish();
const response = z.looseObject({ interrupt_id: z.string().min(1), response: z.unknown().optional() });

// Unknown fields are ignored, because clients of the protocol send further fields.

export const COMMAND = z.looseObject({
  id: z.int().min(0),
  method: z.string().min(1).max(NAME_CHARS_MAX),
  params: record.nullish(),
});

export const RUN_START = z.looseObject({
  input: z.unknown().optional(),
  config: z.looseObject({ configurable: z.looseObject({ checkpoint_id: checkpointId.nullish() }).nullish() }).nullish(),
  metadata: record.nullish(),
  multitaskStrategy: strategy,
  ifNotExists: existence,
  // Other servers spell the field this way.
  if_not_exists: existence,
  multitask_strategy: strategy,
  checkpoint_id: checkpointId.nullish(),
});

export const INPUT_RESPOND = z.looseObject({
  responses: z.array(response).min(1).optional(),
  interrupt_id: z.string().min(1).optional(),
  response: z.unknown().optional(),
  // Changes to fields of the state, as an object or as a list of pairs.
  update: z.union([record, z.array(z.tuple([z.string(), z.unknown()]))]).nullish(),
  goto: z.unknown().optional(),
  metadata: record.nullish(),
});

/** The channels of the protocol, and `custom:` with a name. The chat sends no event on `tasks`. */
const CHANNEL = /^(messages|tools|lifecycle|checkpoints|input|values|updates|tasks|custom(:.*)?)$/s;
const channel = z
  .string()
  .max(NAME_CHARS_MAX)
  .refine((name) => CHANNEL.test(name), { error: ({ input }) => `Unknown channel: ${input}` });

export const SUBSCRIPTION = z.looseObject({
  channels: z.array(channel).min(1).max(100).optional(),
  namespaces: z.array(z.array(z.string()).max(100)).max(100).nullish(),
  depth: z.int().min(0).nullish(),
  since: z.int().min(0).nullish(),
});

export const STATE_UPDATE = z.looseObject({
  values: record.nullish(),
  checkpoint: checkpoint.nullish(),
  checkpoint_id: checkpointId.nullish(),
  as_node: z.string().min(1).nullish(),
});

export const HISTORY = z.looseObject({
  limit: z.int().min(1).max(1_000).nullish(),
  before: z.union([checkpointId, checkpoint, z.looseObject({ configurable: checkpoint })]).nullish(),
  metadata: record.nullish(),
  checkpoint: checkpoint.partial().nullish(),
});

export const PAGE = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(100),
  offset: z.coerce.number().int().min(0).default(0),
});

/**
 * Reads and validates a JSON body. An empty body counts as an empty object, so that a client can omit a body whose
 * fields are all optional. Throws a RequestError if the body is invalid.
 */
export async function bodyOf<Body>(context: Context, schema: z.ZodType<Body>): Promise<Body> {
  const isJson = /^application\/([\w.+-]+\+)?json\b/i.test(context.req.header('content-type') ?? '');
  const text = await context.req.text();
  // A request from a browser (with `origin`) must be JSON, because a page from another origin cannot send JSON without
  // permission.
  if (!isJson && (text !== '' || context.req.header('origin') !== undefined))
    throw new RequestError('bad_request', 'Expected a body with the type application/json.', 415);
  let body: unknown;
  try {
    body = JSON.parse(text || '{}');
  } catch (error) {
    const msg = `Invalid JSON: ${(error as Error).message}`;
    throw new RequestError('invalid_argument', msg, 422, [{ loc: ['body'], msg, type: 'json_invalid' }]);
  }
  return parsed(schema, body, 'body');
}

/** Validates a value from a client. Throws a RequestError that lists the mistakes. */
export function parsed<Value>(schema: z.ZodType<Value>, value: unknown, place: string): Value {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const problems = error.issues.map(({ path, message, code }) => ({
    loc: [place, ...(path as (string | number)[])],
    msg: message,
    type: code,
  }));
  const texts = problems.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  throw new RequestError('invalid_argument', texts.join('; '), 422, problems);
}
