import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  createFeedbackToken,
  createFeedbackTokens,
  type FeedbackServiceOptions,
  type FeedbackTokenRequest,
  submitFeedback,
} from '#src/clients.ts';
import { startRun, withRun } from '#src/index.ts';
import { serve } from '../http/server.ts';
import { record } from '../instrument/recorder.ts';
import { makeRun, part, ROOT as RUN, sendParts, start } from '../receiver/wire.ts';
import { thrownBy } from './make-api.ts';

const ID = '0193b3a0-3333-7000-8000-000000000001';
const TOKEN = { id: 'a', url: 'https://host/tokens/a', expires_at: '2026-11-21T00:00:00Z', more: true };

test('a token is requested with the wire names and the key, below the path of the service', async () => {
  const { url, seen } = await serve((_, response) => response.end(JSON.stringify(TOKEN)));
  const service = { url: `${url}/api/v1`, apiKey: 'key-1', workspaceId: 'workspace-1' };
  const token = await createFeedbackToken(
    { runId: RUN, key: 'liked', feedbackId: ID, expiresIn: { hours: 3 } },
    service,
  );
  expect(token).toEqual(TOKEN);
  expect(seen).toMatchObject([{ method: 'POST', url: '/api/v1/feedback/tokens' }]);
  expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'key-1', 'x-tenant-id': 'workspace-1' });
  expect(JSON.parse(seen[0]?.body ?? '')).toEqual({
    run_id: RUN,
    feedback_key: 'liked',
    id: ID,
    expires_in: { hours: 3 },
  });
});

test.each(['', 'null', '[]', '"a"'])('a response that is not a token rejects: %j', async (answer) => {
  const { url } = await serve((_, response) => response.end(answer));
  const error = await thrownBy(createFeedbackToken({ runId: RUN, key: 'liked' }, { url }));
  expect(error).toMatchObject({
    code: 'RUNSPAN_INVALID_RESPONSE',
    message: expect.stringContaining('is not an object'),
  });
});

test('several tokens are created with one request', async () => {
  const { url, seen } = await serve((_, response) => response.end(JSON.stringify([TOKEN, TOKEN])));
  const expiresAt = '2026-12-01T00:00:00Z';
  const tokens = await createFeedbackTokens(
    [
      { runId: RUN, key: 'a' },
      { runId: RUN, key: 'b', expiresAt },
    ],
    { url },
  );
  expect(tokens).toHaveLength(2);
  expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
    [
      { run_id: RUN, feedback_key: 'a' },
      { run_id: RUN, feedback_key: 'b', expires_at: expiresAt },
    ],
  ]);
  expect(seen[0]?.headers).not.toHaveProperty('x-api-key');
});

test.each([0, 1, 3])('a response with %i tokens for 2 requests rejects', async (count) => {
  const { url } = await serve((_, response) => response.end(JSON.stringify(Array(count).fill(TOKEN))));
  const request = { runId: RUN, key: 'liked' };
  const error = await thrownBy(createFeedbackTokens([request, request], { url }));
  expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_RESPONSE' });
  expect(String(error)).toMatch(`: 200, but the response has ${count} tokens for 2 requests`);
});

describe('a request for a token', () => {
  const whole = { runId: RUN, key: 'liked' };

  test.each<[unknown, string]>([
    [{}, 'body.runId: Field required; body.key: Field required'],
    [null, 'body: Expected an object'],
    [{ runId: 'x', key: '' }, 'body.runId: Expected a UUID; body.key: Expected a string of 1 to 180 characters'],
    [{ ...whole, key: 'x'.repeat(181) }, 'body.key: Expected a string of 1 to 180 characters'],
    [{ ...whole, feedbackId: 'x' }, 'body.feedbackId: Expected a UUID'],
    [{ ...whole, expiresIn: 3 }, 'body.expiresIn: Expected an object'],
    [{ ...whole, expiresAt: 5 }, 'body.expiresAt: Expected a non-empty string'],
    [
      { ...whole, expiresIn: { days: 1 }, expiresAt: '2026-12-01T00:00:00Z' },
      'body.expiresAt: Expected either expiresIn or expiresAt, not both',
    ],
    [{ ...whole, run_id: RUN }, 'body.run_id: Unknown field, or a field that this request cannot set'],
  ])('%j is refused before it is sent', async (request, message) => {
    const { url, connections } = await serve();
    const error = await thrownBy(createFeedbackToken(request as FeedbackTokenRequest, { url }));
    expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST', message: `createFeedbackToken: ${message}` });
    expect(connections()).toBe(0);
  });

  test.each([1, 180])('accepts a key of %i characters', async (length) => {
    const { url } = await serve((_, response) => response.end(JSON.stringify(TOKEN)));
    await createFeedbackToken({ ...whole, key: 'x'.repeat(length) }, { url });
  });

  test.each<[unknown, string]>([
    [[], 'body: Expected a non-empty list'],
    [whole, 'body: Expected a non-empty list'],
    [[whole, { ...whole, key: '' }], 'body[1].key: Expected a string of 1 to 180 characters'],
    [
      [{ key: 'a' }, { ...whole, key: '' }],
      'body[0].runId: Field required; body[1].key: Expected a string of 1 to 180 characters',
    ],
  ])('is refused if the list is %j', async (requests, message) => {
    const error = await thrownBy(createFeedbackTokens(requests as [], { url: 'http://127.0.0.1:9' }));
    expect(error).toMatchObject({ message: `createFeedbackTokens: ${message}` });
  });

  test.each<[string, Partial<FeedbackServiceOptions>]>([
    ['url', { url: 'host' }],
    ['url', { url: 5 as never }],
    ['url', { url: 'http://host.test', apiKey: 'key-1' }],
    ['apiKey', { apiKey: '' }],
    ['workspaceId', { workspaceId: 'a\nb' }],
    ['workspaceID', { workspaceID: 'a' } as object],
  ])('refuses the service option %s: %j', async (name, options) => {
    const error = await thrownBy(createFeedbackToken(whole, { url: 'http://127.0.0.1:9', ...options }));
    expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringContaining(`\`${name}\``) });
    expect(String(error)).not.toContain('key-1');
  });
});

test('an error response is an ApiError without the key', async () => {
  const { url } = await serve((request, response) => {
    response.writeHead(403).end(JSON.stringify({ detail: `no ${request.headers['x-api-key']}` }));
  });
  const error = await thrownBy(createFeedbackToken({ runId: RUN, key: 'a' }, { url, apiKey: 'key-1' }));
  expect(error).toMatchObject({ code: 'RUNSPAN_FORBIDDEN', detail: 'no [secret]' });
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('key-1');
});

test('a call within a run is recorded with its request, but without the URLs', async () => {
  const recorded = record();
  const { url } = await serve((_, response) => response.end(JSON.stringify(TOKEN)));
  await withRun(startRun({ name: 'outer' }), () => createFeedbackToken({ runId: RUN, key: 'a' }, { url }));
  const run = recorded.run('createFeedbackToken');
  expect([run.inputs, run.outputs]).toEqual([{ body: { run_id: RUN, feedback_key: 'a' } }, {}]);
});

test.each(['plain text', '{', '5', '"quoted"', '{"a":1}', '', { a: 'b' }])(
  'a receiver stores the correction %j of a GET and of a POST alike',
  async (correction) => {
    const receiver = await receiverWithRun();
    const { url } = await createFeedbackToken({ runId: RUN, key: 'a' }, { url: receiver.url });
    for (const method of ['GET', 'POST'] as const) {
      await submitFeedback(url, { correction, comment: method }, { method });
      const [stored] = (await (await fetch(`${receiver.url}/feedback?run=${RUN}`)).json()) as object[];
      expect(stored).toMatchObject({ correction, comment: method });
    }
  },
);

test('feedback by the URL of a receiver is stored with the run, and refusals have a reason', async () => {
  const receiver = await receiverWithRun();
  const [liked, noted] = await createFeedbackTokens(
    [
      { runId: RUN, key: 'liked' },
      { runId: RUN, key: 'noted' },
    ],
    { url: receiver.url },
  );
  if (liked === undefined || noted === undefined) throw new Error('expected two tokens');
  await submitFeedback(liked.url, { score: 1, comment: 'good' }, { origin: receiver.url });
  await submitFeedback(noted.url, { value: 'x' }, { method: 'GET' });
  const kept = (await (await fetch(`${receiver.url}/feedback?run=${RUN}`)).json()) as { key: string }[];
  expect(kept.sort((a, b) => a.key.localeCompare(b.key))).toMatchObject([
    { key: 'liked', score: 1, comment: 'good' },
    { key: 'noted', value: 'x' },
  ]);
  const unknown = liked.url.replace(/[^/]+$/, ID);
  expect(await thrownBy(submitFeedback(unknown, { score: 1 }))).toMatchObject({ reason: 'unknown' });
  const over = await createFeedbackToken({ runId: RUN, key: 'over', expiresIn: { minutes: 0 } }, { url: receiver.url });
  expect(await thrownBy(submitFeedback(over.url, { score: 1 }))).toMatchObject({ reason: 'expired' });
});

async function receiverWithRun() {
  const receiver = await start();
  await sendParts(receiver, part(`post.${RUN}`, makeRun()));
  return receiver;
}
