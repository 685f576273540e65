import * as v from 'valibot';
import { type Checks, checkedOptions, isObject } from '../config/checker.ts';
import { serviceApi } from './api.ts';
import { ADDRESS, type CallOptions, type ClientOptions, callChecks, clientChecks } from './client-options.ts';
import { type Endpoint, preparedCall } from './endpoint.ts';
import { listSchema, rule, type Schema, strictRequest, TEXT, UUID, value } from './schema.ts';
import { tracedCall } from './tracing.ts';

/** A request for a feedback URL. */
export interface FeedbackTokenRequest {
  /** Id of the run to give feedback on. */
  runId: string;
  /** Key of the feedback, 1 to 180 characters long. */
  key: string;
  /** UUID of the feedback. New feedback replaces earlier feedback with the same id. */
  feedbackId?: string;
  /** Lifetime of the URL. The service's default is three hours. */
  expiresIn?: { readonly days?: number; readonly hours?: number; readonly minutes?: number };
  /** Expiry time of the URL, as an ISO 8601 timestamp. Set either `expiresAt` or `expiresIn`. */
  expiresAt?: string;
}

/** A feedback URL and its expiry time. Anyone who has `url` can submit feedback. */
export interface FeedbackToken {
  readonly id: string;
  readonly url: string;
  /** ISO 8601 timestamp. */
  readonly expires_at: string;
  readonly feedback_key?: string;
}

/** Address and API key of the service that stores the run. */
export interface FeedbackServiceOptions extends ClientOptions, Pick<CallOptions, 'signal'> {
  /** Base URL of the service, the same as for sending runs. The client appends `/feedback/tokens`. */
  url: string | URL;
  /** Id of the workspace. Required if the API key belongs to several workspaces. */
  workspaceId?: string | undefined;
}

/** Creates a pre-signed feedback URL. Anyone who has the URL can give feedback on the run without an API key. */
export async function createFeedbackToken(
  request: FeedbackTokenRequest,
  service: FeedbackServiceOptions,
): Promise<FeedbackToken> {
  return create(CREATE_ONE, request, service);
}

/** Creates several pre-signed feedback URLs with one HTTP request. The result has the same order as `requests`. */
export async function createFeedbackTokens(
  requests: readonly FeedbackTokenRequest[],
  service: FeedbackServiceOptions,
): Promise<FeedbackToken[]> {
  return create(CREATE_MANY, requests, service);
}

const TOKEN_REQUEST: Schema<object> = v.pipe(
  strictRequest<FeedbackTokenRequest>(
    {
      runId: UUID,
      key: value<string>('a string of 1 to 180 characters', (key) =>
        /^.{1,180}$/s.test(typeof key === 'string' ? key : ''),
      ),
    },
    {
      feedbackId: UUID,
      expiresIn: value<NonNullable<FeedbackTokenRequest['expiresIn']>>('an object', isObject),
      expiresAt: TEXT,
    },
  ),
  rule<FeedbackTokenRequest>(({ expiresIn, expiresAt }) =>
    isObject(expiresIn) && typeof expiresAt === 'string'
      ? [['Expected either expiresIn or expiresAt, not both', 'expiresAt']]
      : [],
  ),
  v.transform(({ runId, key, feedbackId, expiresIn, expiresAt }) => ({
    run_id: runId,
    feedback_key: key,
    id: feedbackId,
    expires_in: expiresIn,
    expires_at: expiresAt,
  })),
);

const CREATE_ONE: Endpoint = {
  name: 'createFeedbackToken',
  method: 'POST',
  path: '/feedback/tokens',
  body: TOKEN_REQUEST,
  // If a retry creates a second token, no harm is done.
  isIdempotent: true,
};

const CREATE_MANY: Endpoint = {
  ...CREATE_ONE,
  name: 'createFeedbackTokens',
  body: listSchema(TOKEN_REQUEST, 1),
  response: 'list',
};

async function create<Tokens>(endpoint: Endpoint, body: object, options: FeedbackServiceOptions): Promise<Tokens> {
  const { name } = endpoint;
  const checked = checkedOptions<FeedbackServiceOptions>(`the service of ${name}`, options, serviceChecks);
  const { url, workspaceId, signal, ...client } = checked;
  const call = preparedCall(endpoint, { body, options: { signal } });
  const credentials = { 'x-api-key': checked.apiKey, 'x-tenant-id': workspaceId };
  const api = serviceApi({ option: 'url', url, credentials }, client);
  try {
    // The URLs are credentials, so they are not recorded.
    const run = { name, runType: 'tool', inputs: () => ({ body: call.body }), outputs: () => ({}) } as const;
    return await tracedCall(run, async () => {
      const response = await api.send<Tokens>(call);
      const { data } = response;
      const { length } = body as readonly unknown[];
      if (Array.isArray(data) && data.length !== length)
        throw api.invalidResponse(call, response, `has ${data.length} tokens for ${length} requests`);
      return data;
    });
  } finally {
    await api.close();
  }
}

const serviceChecks: Checks<FeedbackServiceOptions> = {
  ...clientChecks,
  signal: callChecks.signal,
  url: ADDRESS,
  workspaceId: clientChecks.apiKey,
};
