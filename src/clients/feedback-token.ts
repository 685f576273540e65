import { type Check, type Checks, checkedOptions } from '../base/options.ts';
import { problemOf } from './answer-form.ts';
import { InvalidAnswerError } from './api-error.ts';
import { UUID } from './body-rules.ts';
import type { Call } from './call.ts';
import { type CallOptions, type ClientOptions, callChecks, clientChecks } from './client-options.ts';
import { serviceApi } from './service-api.ts';
import { tracedCall } from './traced-call.ts';
import { InvalidRequestError, type ValidationError } from './validation-error.ts';

/** What an address for feedback is to be made for. */
export interface FeedbackTokenRequest {
  /** The run that the feedback is about. */
  runId: string;
  /** What the feedback is called; 1 to 180 characters. */
  key: string;
  /** Id of the feedback itself, a UUID: what is given by the address again takes the place of what was. */
  feedbackId?: string;
  /** How long the address works; the service's default is three hours. */
  expiresIn?: { readonly days?: number; readonly hours?: number; readonly minutes?: number };
  /** When it ends to work, as ISO 8601; instead of `expiresIn`. */
  expiresAt?: string;
}

/** An address for feedback. Whoever has `url` may use it. */
export interface FeedbackToken {
  readonly id: string;
  readonly url: string;
  /** ISO 8601. */
  readonly expires_at: string;
  readonly feedback_key?: string;
}

/** The service that keeps the run, and the key for it. */
export interface FeedbackServiceOptions extends ClientOptions, Pick<CallOptions, 'signal'> {
  /** The address of trace ingestion, to which `/feedback/tokens` is appended. */
  url: string | URL;
  /** Names the workspace, where the key is for several. */
  workspaceId?: string | undefined;
}

/** Makes a pre-signed address by which feedback can be given to a run without a key. */
export async function createFeedbackToken(
  request: FeedbackTokenRequest,
  service: FeedbackServiceOptions,
): Promise<FeedbackToken> {
  const call = 'createFeedbackToken';
  const [body = {}] = checkedBody(call, [readRequest(request, ['body'])]);
  return create(call, body, service);
}

/** Makes several in one request; they come in the order in which they are asked for. */
export async function createFeedbackTokens(
  requests: readonly FeedbackTokenRequest[],
  service: FeedbackServiceOptions,
): Promise<FeedbackToken[]> {
  const call = 'createFeedbackTokens';
  if (!Array.isArray(requests) || requests.length === 0) {
    throw new InvalidRequestError(call, [
      { loc: ['body'], msg: 'Expected a list that is not empty', type: 'list_type' },
    ]);
  }
  const read = requests.map((request, index) => readRequest(request, ['body', index]));
  return create(call, checkedBody(call, read), service);
}

async function create<Tokens>(name: string, body: object, options: FeedbackServiceOptions): Promise<Tokens> {
  const checked = checkedOptions<FeedbackServiceOptions>(`the service of ${name}`, options, serviceChecks);
  const { url, workspaceId, signal, ...client } = checked;
  const credentials = { 'x-api-key': checked.apiKey, 'x-tenant-id': workspaceId };
  const api = serviceApi({ option: 'url', url, credentials }, client);
  try {
    // The addresses are credentials: they are not recorded.
    const run = { name, runType: 'tool', inputs: () => ({ body }), outputs: () => ({}) } as const;
    const call: Call = {
      name,
      method: 'POST',
      path: '/feedback/tokens',
      body,
      // Two of them do no harm.
      isIdempotent: true,
      ...(signal === undefined ? {} : { options: { signal } }),
    };
    return await tracedCall(run, async () => {
      const answer = await api.answer<Tokens>(call);
      const problem = problemOf(answer.data, Array.isArray(body) ? 'list' : 'object');
      if (problem !== undefined) throw new InvalidAnswerError(api.factsOf(call), answer, problem);
      return answer.data;
    });
  } finally {
    await api.close();
  }
}

const REQUEST_RULES: Readonly<Record<keyof FeedbackTokenRequest, Check>> = {
  runId: UUID,
  key: ['text of 1 to 180 characters', (value) => typeof value === 'string' && value !== '' && value.length <= 180],
  feedbackId: UUID,
  expiresIn: ['days, hours or minutes, each a number from 0', isSpan],
  expiresAt: ['a time as ISO 8601 has it', isMoment],
};

const WIRE_NAMES: Readonly<Record<keyof FeedbackTokenRequest, string>> = {
  runId: 'run_id',
  key: 'feedback_key',
  feedbackId: 'id',
  expiresIn: 'expires_in',
  expiresAt: 'expires_at',
};

/** A request in the words of the wire, and what is wrong with it. */
interface ReadRequest {
  readonly body: Readonly<Record<string, unknown>>;
  readonly errors: readonly ValidationError[];
}

function checkedBody(call: string, read: readonly ReadRequest[]): ReadRequest['body'][] {
  const errors = read.flatMap((request) => request.errors);
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  return read.map(({ body }) => body);
}

function readRequest(request: unknown, place: readonly (string | number)[]): ReadRequest {
  const given = (typeof request === 'object' && request !== null ? request : {}) as Partial<FeedbackTokenRequest>;
  const errors: ValidationError[] = [];
  const body: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const name = Object.hasOwn(WIRE_NAMES, field) ? (field as keyof FeedbackTokenRequest) : undefined;
    const rule = name && REQUEST_RULES[name];
    const expected = rule?.[0] ?? `one of ${Object.keys(WIRE_NAMES).join(', ')}`;
    if (name === undefined || !rule?.[1](value)) {
      errors.push({ loc: [...place, field], msg: `Expected ${expected}`, type: 'value_error' });
    } else body[WIRE_NAMES[name]] = value;
  }
  for (const field of ['runId', 'key'] as const) {
    if (given[field] === undefined) errors.push({ loc: [...place, field], msg: 'Field required', type: 'missing' });
  }
  if (given.expiresIn !== undefined && given.expiresAt !== undefined) {
    errors.push({ loc: [...place, 'expiresAt'], msg: 'Expected either expiresIn or expiresAt', type: 'value_error' });
  }
  return { body, errors };
}

function isMoment(value: unknown): boolean {
  return typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T/.test(value) && !Number.isNaN(Date.parse(value));
}

function isSpan(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const entries = Object.entries(value);
  const isPart = ([unit, count]: [string, unknown]): boolean =>
    ['days', 'hours', 'minutes'].includes(unit) && Number.isFinite(count) && (count as number) >= 0;
  return entries.length > 0 && entries.every(isPart);
}

const serviceChecks: Checks<FeedbackServiceOptions> = {
  ...clientChecks,
  signal: callChecks.signal,
  url: ['an address', (value) => typeof value === 'string' || value instanceof URL],
  workspaceId: clientChecks.apiKey,
};
