import type { IncomingMessage } from 'node:http';
import { onceRunIsHere } from '../ingest/run-arrival.ts';
import { parseUuid } from '../ingest/run-fields.ts';
import { Findings, Refusal } from '../refusal.ts';
import { type Answer, type Call, idOf, type Route, readJson } from '../route.ts';
import type { FeedbackToken } from './feedback.ts';
import { FEEDBACK_BYTES_MAX, feedbackOf, readFeedback, readSaid, readSaidQuery, type Said } from './feedback-fields.ts';
import { isExpired, readTokens } from './feedback-token.ts';

/** Of a list that is asked for without a limit. */
const PAGE_ITEMS = 100;
const PAGE_ITEMS_MAX = 1_000;

/** Goes with all that is answered to a holder of a token, who may be a page of any origin, also as an image. */
const FOR_ANYONE: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
};

const TOKEN = /^(?:\/api\/v1)?\/feedback\/tokens\/(?<id>[^/]+)$/;
const TOKENS = /^(?:\/api\/v1)?\/feedback\/tokens$/;

/** Feedback by token, as the interface has it, and how tokens are made. */
export const tokenRoutes: readonly Route[] = [
  { method: 'POST', path: TOKENS, admission: 'write', handle: mint },
  { method: 'GET', path: TOKENS, handle: listTokens },
  {
    method: 'POST',
    path: TOKEN,
    admission: 'anyone',
    handle: (call) =>
      forAnyone(async () => {
        const token = await tokenOf(call);
        if (!isForm(call.request)) {
          return keep(call, token, readSaid(await readJson(call, FEEDBACK_BYTES_MAX), call.strict));
        }
        await keep(call, token, readSaidQuery(call.search, call.strict));
        return htmlPage('Thank you', '<p>Thank you.</p>');
      }),
  },
  {
    method: 'GET',
    path: TOKEN,
    admission: 'anyone',
    handle: (call) =>
      forAnyone(async () => {
        const token = await tokenOf(call);
        const said = readSaidQuery(call.search, call.strict);
        return isPreview(call.request) ? CONFIRMATION : keep(call, token, said);
      }),
  },
  {
    method: 'OPTIONS',
    path: TOKEN,
    admission: 'anyone',
    handle: () => ({
      status: 200,
      body: {},
      headers: {
        ...FOR_ANYONE,
        'access-control-allow-methods': 'GET, POST, OPTIONS',
        'access-control-allow-headers': 'content-type',
        'access-control-max-age': '86400',
      },
    }),
  },
];

/** What clients of the field send and ask without a token. */
export const feedbackRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/feedback$/,
    admission: 'write',
    handle: giveFeedback,
  },
  {
    method: 'GET',
    path: /^\/feedback$/,
    handle: async ({ store, search }) => {
      const ids = search.getAll('run').map((id) => queryId('run', id));
      if (ids.length === 0) queryId('run', '');
      const all = await Promise.all(ids.map(async (id) => (await store.details(id))?.feedback ?? []));
      const keys = search.getAll('key');
      const found = all.flat().filter(({ key }) => keys.length === 0 || keys.includes(key));
      return { status: 200, body: pageOf(found, search) };
    },
  },
];

/** Keeps what a body says of the run that it names. */
export async function giveFeedback(call: Call): Promise<Answer> {
  const findings = new Findings();
  const feedback = readFeedback(await readJson(call, FEEDBACK_BYTES_MAX), ['body'], findings);
  findings.refuseIfAny();
  if (!(await call.store.addFeedback(feedback))) throw withoutRun(feedback.run_id);
  return { status: 200, body: feedback };
}

/** Matches programs that fetch links for a preview but do not request HTML. */
const PREVIEW_AGENTS = new RegExp(
  [
    'slackbot',
    'slack-imgproxy',
    'twitterbot',
    'facebookexternalhit',
    'facebot',
    'linkedinbot',
    'discordbot',
    'telegrambot',
    'whatsapp',
    'skypeuripreview',
    'microsoftpreview',
    'bingpreview',
    'bingbot',
    'googlebot',
    'applebot',
    'redditbot',
    'pinterestbot',
    'mastodon',
    'iframely',
    'embedly',
    'vkshare',
  ].join('|'),
  'i',
);

/**
 * Whether a GET request may come from a link preview, a mail scanner or another program that opens links before the
 * user does.
 */
function isPreview({ headers }: IncomingMessage): boolean {
  const purpose = headers['sec-purpose'] ?? headers.purpose ?? headers['x-purpose'] ?? headers['x-moz'];
  if (purpose !== undefined || PREVIEW_AGENTS.test(headers['user-agent'] ?? '')) return true;
  return /\btext\/html\b/i.test(headers.accept ?? '');
}

/**
 * Whether a POST comes from the form of `CONFIRMATION`. The form has no fields. Its URL contains the query string of
 * the link.
 */
function isForm({ headers }: IncomingMessage): boolean {
  const isUrlEncoded = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
  return isUrlEncoded && headers['content-length'] === '0';
}

const CONFIRMATION: Answer = htmlPage(
  'Send feedback',
  '<form method="post"><p>Send this feedback?</p><button>Send</button></form>',
);

function htmlPage(title: string, body: string): Answer {
  return {
    status: 200,
    content: `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>${body}</html>\n`,
    headers: { 'content-type': 'text/html; charset=utf-8' },
  };
}

async function mint(call: Call): Promise<Answer> {
  const body = await readJson(call, FEEDBACK_BYTES_MAX);
  const tokens = readTokens(body);
  await call.store.addTokens(tokens);
  const shown = tokens.map((token) => shownToken(token, call.request));
  return { status: 200, body: Array.isArray(body) ? shown : shown[0] };
}

async function listTokens({ request, search, store }: Call): Promise<Answer> {
  const tokens = await store.tokens(queryId('run_id', search.get('run_id') ?? ''));
  return {
    status: 200,
    body: pageOf(
      tokens.map((token) => shownToken(token, request)),
      search,
    ),
  };
}

/** As the maker of a token is told of it, under the address that it has used. */
function shownToken({ id, expires_at, feedback_key }: FeedbackToken, { headers }: IncomingMessage): object {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  return { id, url: `${scheme}://${headers.host}/api/v1/feedback/tokens/${id}`, expires_at, feedback_key };
}

async function tokenOf(call: Call): Promise<FeedbackToken> {
  const token = await call.store.token(idOf(call));
  if (token === undefined) throw new Refusal(404, 'There is no such feedback token here');
  if (isExpired(token)) throw new Refusal(410, `The feedback token expired at ${token.expires_at}`);
  return token;
}

async function keep({ store }: Call, token: FeedbackToken, said: Said): Promise<Answer> {
  const { run_id: runId, feedback_key: key, feedback_id: id } = token;
  const feedback = feedbackOf(said, runId, key, id);
  // What a quick user says of an answer may be here before the run.
  if (!(await onceRunIsHere(store, () => store.addFeedback(feedback)))) throw withoutRun(runId);
  return { status: 200, body: { id, key } };
}

async function forAnyone(answering: () => Promise<Answer>): Promise<Answer> {
  try {
    const answer = await answering();
    return { ...answer, headers: { ...answer.headers, ...FOR_ANYONE } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(error.status, error.detail, { ...error.headers, ...FOR_ANYONE });
  }
}

function withoutRun(runId: string): Refusal {
  return new Refusal(404, `The run ${runId} is not here: it has not come yet, or is no longer kept`);
}

function queryId(name: string, text: string): string {
  const id = parseUuid(text, true);
  if (id === undefined) throw wrong(name, 'uuid', `Expected \`${name}\` to be a UUID`);
  return id;
}

/** The items from `offset` on, up to `limit` of them. */
function pageOf<Item>(items: readonly Item[], search: URLSearchParams): Item[] {
  const [offset, limit] = [countIn(search, 'offset', 0), countIn(search, 'limit', PAGE_ITEMS)];
  return items.slice(offset, offset + Math.min(limit, PAGE_ITEMS_MAX));
}

function countIn(search: URLSearchParams, name: string, missing: number): number {
  const text = search.get(name);
  if (text === null) return missing;
  if (!/^\d{1,9}$/.test(text)) throw wrong(name, 'integer', `Expected \`${name}\` to be a whole number from 0`);
  return Number(text);
}

function wrong(name: string, type: string, msg: string): Refusal {
  return new Refusal(422, [{ loc: ['query', name], msg, type }]);
}
