import type { Context, Env } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { CHECKPOINT_ID, CHECKPOINT_NAME } from '../protocol/checkpoint-id.ts';

/** One mistake in a request, in the form of the interface. */
interface ValidationError {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

const record = z.record(z.string(), z.unknown());
const CHARACTERS_MAX = 512;
const checkpoint = z.looseObject({
  checkpoint_id: CHECKPOINT_ID,
  checkpoint_ns: CHECKPOINT_NAME.optional(),
});

/** Clients of the protocol add fields of their own, which are passed over. */
export const COMMAND = z.looseObject({
  id: z.int().min(0),
  method: z.string().min(1).max(CHARACTERS_MAX),
  params: record.nullish(),
});

export const SUBSCRIPTION = z.looseObject({
  channels: z.array(z.string()).min(1).max(100).optional(),
  namespaces: z.array(z.array(z.string()).max(100)).max(100).nullish(),
  depth: z.int().min(0).nullish(),
  since: z.int().min(0).nullish(),
  values: z.literal('changes').nullish(),
});

export const STATE_UPDATE = z.looseObject({
  values: record.nullish(),
  checkpoint: checkpoint.nullish(),
  checkpoint_id: CHECKPOINT_ID.nullish(),
  as_node: z.string().min(1).nullish(),
});

export const HISTORY = z.looseObject({
  limit: z.int().min(1).max(1_000).nullish(),
  before: z.union([CHECKPOINT_ID, checkpoint, z.looseObject({ configurable: checkpoint })]).nullish(),
  metadata: record.nullish(),
  checkpoint: checkpoint.partial().nullish(),
  values: z.literal('changes').nullish(),
});

/**
 * Reads a request body. All its fields are optional, so the body may be absent. A page from another origin must send
 * JSON anyway.
 */
export async function optionalBodyOf<Body>(context: Context<Env>, schema: z.ZodType<Body>): Promise<Body> {
  const origin = context.req.header('origin');
  const isForeign = origin !== undefined && origin.replace(/^https?:\/\//, '') !== context.req.header('host');
  const isAbsent = (isJson(context) || !isForeign) && (await context.req.text()) === '';
  return isAbsent ? schema.parse({}) : bodyOf(context, schema);
}

/** Reads the body of a request. Throws a 415 for what is no JSON by its type, and a 422 that lists the mistakes. */
export async function bodyOf<Body>(context: Context<Env>, schema: z.ZodType<Body>): Promise<Body> {
  // Pages of other origins can send no such type without asking first.
  if (!isJson(context)) {
    throw new HTTPException(415, { message: 'The body has to be JSON, sent as application/json.' });
  }
  let value: unknown;
  try {
    value = JSON.parse(await context.req.text());
  } catch (error) {
    throw new InvalidBodyError([
      { loc: ['body'], msg: `Invalid JSON: ${(error as Error).message}`, type: 'json_invalid' },
    ]);
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new InvalidBodyError(
    read.error.issues.map(({ path, message, code }) => ({
      loc: ['body', ...(path as (string | number)[])],
      msg: message,
      type: code,
    })),
  );
}

function isJson(context: Context<Env>): boolean {
  return /^application\/([\w.+-]+\+)?json\b/i.test(context.req.header('content-type') ?? '');
}

/** The body of a request has mistakes. */
export class InvalidBodyError extends Error {
  override readonly name: string = 'InvalidBodyError';
  readonly detail: readonly ValidationError[];

  constructor(detail: readonly ValidationError[]) {
    super(detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
    this.detail = detail;
  }
}
