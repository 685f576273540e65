import type { Context, Env } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';

/** One mistake in a request, in the form of the interface. */
export interface Problem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

const NAME_CHARS_MAX = 512;

const record = z.record(z.string(), z.unknown());
// PostgreSQL does not store NUL.
const checkpointName = z
  .string()
  .max(NAME_CHARS_MAX)
  .refine((name) => !name.includes('\0'), 'Expected text without NUL');
const checkpointId = checkpointName.min(1);
const checkpoint = z.looseObject({ checkpoint_id: checkpointId, checkpoint_ns: checkpointName.optional() });
const strategy = z.enum(['reject', 'interrupt', 'enqueue', 'rollback']).nullish();
const existence = z.enum(['create', 'reject']).nullish();
const response = z.looseObject({ interrupt_id: z.string().min(1), response: z.unknown().optional() });

// Clients of the protocol send further fields, which are ignored.

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
  // Other servers spell them like this.
  if_not_exists: existence,
  multitask_strategy: strategy,
  checkpoint_id: checkpointId.nullish(),
});

export const INPUT_RESPOND = z.looseObject({
  responses: z.array(response).min(1).optional(),
  interrupt_id: z.string().min(1).optional(),
  response: z.unknown().optional(),
  // Fields of the state, or pairs of them.
  update: z.union([record, z.array(z.tuple([z.string(), z.unknown()]))]).nullish(),
  goto: z.unknown().optional(),
  metadata: record.nullish(),
});

export const SUBSCRIPTION = z.looseObject({
  channels: z.array(z.string()).min(1).max(100).optional(),
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

/**
 * Reads a body whose fields are all optional, so that the body may be absent. A page of another origin must send JSON
 * nevertheless.
 */
export async function optionalBody<Body>(context: Context<Env>, schema: z.ZodType<Body>): Promise<Body> {
  const origin = context.req.header('origin');
  const isForeign = origin !== undefined && origin.replace(/^https?:\/\//, '') !== context.req.header('host');
  const isAbsent = (isJson(context) || !isForeign) && (await context.req.text()) === '';
  return isAbsent ? schema.parse({}) : bodyOf(context, schema);
}

/** Reads a body. Throws a 415 if it is not JSON by its type, and an InvalidRequestError if it has mistakes. */
export async function bodyOf<Body>(context: Context<Env>, schema: z.ZodType<Body>): Promise<Body> {
  // A page of another origin cannot send this type without permission.
  if (!isJson(context)) throw new HTTPException(415, { message: 'Expected a body with the type application/json.' });
  let value: unknown;
  try {
    value = JSON.parse(await context.req.text());
  } catch (error) {
    const msg = `Invalid JSON: ${(error as Error).message}`;
    throw new InvalidRequestError([{ loc: ['body'], msg, type: 'json_invalid' }]);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new InvalidRequestError(problems(result.error, 'body'));
}

/** A whole number of the query. */
export function numberOf(context: Context<Env>, name: string, min: number, max: number, usual: number): number {
  const text = context.req.query(name) ?? String(usual);
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  const msg = `Expected a whole number from ${min} to ${max}`;
  throw new InvalidRequestError([{ loc: ['query', name], msg, type: 'int_parsing' }]);
}

export function problems(error: z.ZodError, place: string): Problem[] {
  return error.issues.map(({ path, message, code }) => ({
    loc: [place, ...(path as (string | number)[])],
    msg: message,
    type: code,
  }));
}

export class InvalidRequestError extends Error {
  override readonly name: string = 'InvalidRequestError';
  readonly detail: readonly Problem[];

  constructor(detail: readonly Problem[]) {
    super(detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
    this.detail = detail;
  }
}

function isJson(context: Context<Env>): boolean {
  return /^application\/([\w.+-]+\+)?json\b/i.test(context.req.header('content-type') ?? '');
}
