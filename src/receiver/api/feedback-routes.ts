import type { IncomingMessage } from 'node:http';
import type { Feedback, FeedbackToken } from '../domain/feedback.ts';
import { checkProject } from '../http/access/project-scope.ts';
import {
  FEEDBACK_BYTES_MAX,
  feedbackOf,
  feedbackOfBody,
  isExpired,
  readFeedbackInput,
  readFeedbackQuery,
  readRating,
  readTokens,
  requireContent,
} from '../http/feedback-fields.ts';
import { HttpError } from '../http/http-error.ts';
import { type Call, idOf, type Route, type RouteResponse, readJson } from '../http/route.ts';
import { uuidSchema } from '../http/run-fields.ts';
import { parsed, refuseUnknownParameters, validated } from '../http/validation.ts';
import { addFeedback } from '../store/add-feedback.ts';

const PAGE_ITEMS = 100;
const PAGE_ITEMS_MAX = 1_000;

const TOKENS = '/feedback/tokens';
const TOKEN = `${TOKENS}/:id`;

/** Documented HTTP routes for feedback tokens. */
export const tokenRoutes: readonly Route[] = [
  { method: 'POST', path: TOKENS, admission: 'write', handle: createTokens },
  { method: 'DELETE', path: TOKENS, admission: 'write', handle: revokeTokens },
  { method: 'DELETE', path: TOKEN, admission: 'write', handle: revokeToken },
  { method: 'POST', path: TOKEN, admission: 'anyone', handle: (call) => forAnyone(postWithToken(call)) },
  { method: 'GET', path: TOKEN, admission: 'anyone', handle: (call) => forAnyone(getWithToken(call)) },
  { method: 'OPTIONS', path: TOKEN, admission: 'anyone', handle: () => PREFLIGHT },
];

/** HTTP routes that LangSmith clients use to send feedback without a token. */
export const feedbackRoutes: readonly Route[] = [
  { method: 'POST', path: '/feedback', admission: 'write', handle: postFeedback },
  { method: 'GET', path: '/feedback', handle: listFeedback },
  { method: 'GET', path: '/feedback/:id', handle: async (call) => ({ status: 200, body: await feedbackOfPath(call) }) },
  { method: 'PATCH', path: '/feedback/:id', admission: 'write', handle: updateFeedback },
  { method: 'DELETE', path: '/feedback/:id', admission: 'admin', handle: deleteFeedback },
];

export async function postFeedback(call: Call): Promise<RouteResponse> {
  const feedback = requireContent(feedbackOfBody(await readJson(call, FEEDBACK_BYTES_MAX), ['body']));
  await checkProject(call, [feedback.run_id]);
  if (!(await call.store.addFeedback(call.scope, feedback))) throw withoutRun(feedback.run_id);
  return { status: 200, body: feedback };
}

/** Returns the feedback in the path. Throws an HTTP 404 error if the key may not see it. */
async function feedbackOfPath(call: Call): Promise<Feedback> {
  const id = idOf(call);
  const feedback = await call.store.feedbackWithId(call.scope, id);
  if (feedback === undefined) throw new HttpError(404, `The feedback ${id} is not stored`);
  return feedback;
}

/** Changes the given fields, also to empty ones. The response is the id alone: a key that may write may not read. */
async function updateFeedback(call: Call): Promise<RouteResponse> {
  const fields = readFeedbackInput(await readJson(call, FEEDBACK_BYTES_MAX), false);
  if (Object.keys(fields).length === 0) requireContent(fields);
  const { id, run_id: runId, key, ...earlier } = await feedbackOfPath(call);
  const { created_at: _, ...changed } = feedbackOf(fields, runId, key, id);
  if (!(await call.store.addFeedback(call.scope, { ...earlier, ...changed }))) throw withoutRun(runId);
  return { status: 200, body: { id } };
}

async function deleteFeedback(call: Call): Promise<RouteResponse> {
  const feedback = await feedbackOfPath(call);
  await call.store.removeFeedback(call.scope, feedback);
  return { status: 200, body: { id: feedback.id } };
}

export const PAGE_PARAMETERS: readonly string[] = ['offset', 'limit'];

async function listFeedback({ store, scope, search }: Call): Promise<RouteResponse> {
  // LangSmith clients may send `source`. The receiver accepts `source`, but does not store it.
  refuseUnknownParameters(search, ['run', 'key', 'source', ...PAGE_PARAMETERS]);
  const ids = idsIn(search, 'run');
  const all = await Promise.all(ids.map(async (id) => (await store.details(scope, id))?.feedback ?? []));
  const keys = search.getAll('key');
  const found = all.flat().filter(({ key }) => keys.length === 0 || keys.includes(key));
  return { status: 200, body: itemsOfPage(found, search) };
}

async function createTokens(call: Call): Promise<RouteResponse> {
  const body = await readJson(call, FEEDBACK_BYTES_MAX);
  const created = await mintTokens(call, body);
  return { status: 200, body: Array.isArray(body) ? created : created[0] };
}

/** Returns the response to each token that the body requests. */
export async function mintTokens(call: Call, body: unknown): Promise<TokenResponse[]> {
  const tokens = readTokens(body, call.scope.tenant);
  const runIds = tokens.map(({ run_id }) => run_id);
  await checkProject(call, runIds);
  return Promise.all(tokens.map((token) => tokenBody(token, call)));
}

/** Revokes all tokens of a run. Tokens that are created later are valid. */
async function revokeTokens(call: Call): Promise<RouteResponse> {
  const { search, store, scope } = call;
  refuseUnknownParameters(search, ['run_id']);
  const [runId = ''] = idsIn(search, 'run_id');
  await checkProject(call, [runId]);
  await store.revokeTokens(scope, runId, Date.now());
  return { status: 200, body: { run_id: runId } };
}

async function revokeToken(call: Call): Promise<RouteResponse> {
  const { store, scope } = call;
  const token = await signedToken(call);
  if (token?.tenant !== scope.tenant) throw unknownToken();
  await checkProject(call, [token.run_id]);
  await store.revokeTokens(scope, token.id, Date.now());
  return { status: 200, body: { id: token.id } };
}

/** Returns all values of a URL parameter. Throws an HTTP 422 error if there is none, or if one is not a UUID. */
function idsIn(search: URLSearchParams, parameter: string): string[] {
  const [ids, loc] = [search.getAll(parameter), ['query', parameter]];
  if (ids.length === 0) throw new HttpError(422, [{ loc, msg: `\`${parameter}\` is missing`, type: 'missing' }]);
  return ids.map((id) => validated(uuidSchema(true), id, loc));
}

type TokenResponse = Pick<FeedbackToken, 'id' | 'feedback_key' | 'expires_at'> & { readonly url: string };

async function tokenBody(token: FeedbackToken, { tokens, access, request: { headers } }: Call): Promise<TokenResponse> {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  const base = access.rules.publicUrl ?? `${scheme}://${headers.host}`;
  const { id, expires_at, feedback_key } = token;
  const signed = await tokens.sign(TOKEN_FIELDS.map((field) => token[field]));
  return { id, url: `${base}/api/v1/feedback/tokens/${signed}`, expires_at, feedback_key };
}

async function postWithToken(call: Call): Promise<RouteResponse> {
  const token = await tokenOf(call);
  const isForm = isConfirmation(call.request);
  const input = isForm
    ? readFeedbackQuery(call.search, call.strict)
    : readRating(await readJson(call, FEEDBACK_BYTES_MAX), call.strict);
  const answer = await store(call, token, input);
  return isForm ? htmlPage('Thank you', '<p>Thank you.</p>') : answer;
}

async function getWithToken(call: Call): Promise<RouteResponse> {
  const token = await tokenOf(call);
  const input = readFeedbackQuery(call.search, call.strict);
  return isPreview(call.request) ? CONFIRMATION : store(call, token, input);
}

/** The fields of a token in the order of their values in the token's text. */
const TOKEN_FIELDS = ['tenant', 'id', 'run_id', 'feedback_key', 'feedback_id', 'created_ms', 'expires_at'] as const;

/** Returns the token in the path, or undefined if the receiver has not signed it. */
async function signedToken({ parameters, tokens }: Call): Promise<FeedbackToken | undefined> {
  const values = await tokens.read(parameters.id ?? '');
  const fields = values && Object.fromEntries(TOKEN_FIELDS.map((field, at) => [field, values[at]]));
  return fields as FeedbackToken | undefined;
}

async function tokenOf(call: Call): Promise<FeedbackToken> {
  const { access, store } = call;
  const token = await signedToken(call);
  if (token === undefined || !access.isTenant(token.tenant)) throw unknownToken();
  if (isExpired(token)) throw new HttpError(410, `The feedback token expired at ${token.expires_at}`);
  const revokedMs = await store.tokensRevokedMs(token, [token.id, token.run_id]);
  if (revokedMs !== undefined && token.created_ms <= revokedMs) {
    throw new HttpError(410, 'The feedback token has been revoked');
  }
  return token;
}

function unknownToken(): HttpError {
  return new HttpError(404, 'The feedback token does not exist');
}

async function store(call: Call, token: FeedbackToken, input: Partial<Feedback>): Promise<RouteResponse> {
  const { tenant, run_id: runId, feedback_key: key, feedback_id: id } = token;
  if (!(await addFeedback(call.store, { tenant }, feedbackOf(input, runId, key, id)))) throw withoutRun(runId);
  return { status: 200, body: { id, key } };
}

function withoutRun(runId: string): HttpError {
  return new HttpError(404, `The run ${runId} has not arrived or is no longer stored`);
}

/** Matches the user agents of link preview bots that do not request HTML. */
const PREVIEW_AGENTS = new RegExp(
  [
    'slackbot|slack-imgproxy|twitterbot|facebookexternalhit|facebot|linkedinbot|discordbot|telegrambot|whatsapp',
    'skypeuripreview|microsoftpreview|bingpreview|bingbot|googlebot|applebot|redditbot|pinterestbot|mastodon',
    'iframely|embedly|vkshare',
  ].join('|'),
  'i',
);

/** Returns whether a link preview bot or a mail scanner may have sent the GET request. */
function isPreview({ headers }: IncomingMessage): boolean {
  const purpose = headers['sec-purpose'] ?? headers.purpose ?? headers['x-purpose'] ?? headers['x-moz'];
  if (purpose !== undefined || PREVIEW_AGENTS.test(headers['user-agent'] ?? '')) return true;
  return /\btext\/html\b/i.test(headers.accept ?? '');
}

/** Returns whether the confirmation form sent the request. It has no fields, but its URL has the query string. */
function isConfirmation({ headers }: IncomingMessage): boolean {
  const isUrlEncoded = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
  return isUrlEncoded && headers['content-length'] === '0';
}

const CONFIRMATION: RouteResponse = htmlPage(
  'Send feedback',
  '<form method="post"><p>Send this feedback?</p><button>Send</button></form>',
);

function htmlPage(title: string, body: string): RouteResponse {
  return {
    status: 200,
    content: `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>${body}</html>\n`,
    headers: { 'content-type': 'text/html; charset=utf-8' },
  };
}

/** Headers for all responses to requests with a feedback token. Web pages from any origin may use a feedback token. */
const FOR_ANYONE: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
};

const PREFLIGHT: RouteResponse = {
  status: 200,
  body: {},
  headers: {
    ...FOR_ANYONE,
    'access-control-allow-methods': 'GET, POST, OPTIONS',
    'access-control-allow-headers': 'content-type',
    'access-control-max-age': '86400',
  },
};

async function forAnyone(answering: Promise<RouteResponse>): Promise<RouteResponse> {
  try {
    const answer = await answering;
    return { ...answer, headers: { ...answer.headers, ...FOR_ANYONE } };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    throw new HttpError(error.status, error.detail, { ...error.headers, ...FOR_ANYONE });
  }
}

const wholeNumber = parsed('a whole number from 0', (value) =>
  /^\d{1,9}$/.test(String(value)) ? Number(value) : undefined,
);

export function itemsOfPage<Item>(items: readonly Item[], search: URLSearchParams): Item[] {
  const offset = validated(wholeNumber, search.get('offset') ?? '0', ['query', 'offset']);
  const limit = validated(wholeNumber, search.get('limit') ?? `${PAGE_ITEMS}`, ['query', 'limit']);
  return items.slice(offset, offset + Math.min(limit, PAGE_ITEMS_MAX));
}
