import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { FeedbackError, type FeedbackSubmission, feedbackLink, submitFeedback } from '#src/clients.ts';
import { startRun, withRun } from '#src/index.ts';
import { serve } from '../http/server.ts';
import { record } from '../instrument/recorder.ts';
import { thrownBy } from './make-api.ts';

const TOKEN = '0193b3a0-2222-7000-8000-00000000000f';
const PATH = `/api/v1/feedback/tokens/${TOKEN}`;

describe('submitFeedback', () => {
  test('posts the given fields without a key', async () => {
    const { url, seen } = await serve((_, response) => response.end('{"id":1}'));
    const said = {
      score: 1,
      value: { a: 'b' },
      comment: 'grün',
      correction: { answer: 'x' },
      metadata: { from: 'page' },
    };
    expect(await submitFeedback(url + PATH, { ...said, comment: 'grün' })).toBeUndefined();
    await submitFeedback(new URL(url + PATH), { score: false, comment: null, value: undefined } as object);
    await submitFeedback(url + PATH, { score: null });
    expect(seen.map(({ method, url: path, body }) => [method, path, JSON.parse(body)])).toEqual([
      ['POST', PATH, said],
      ['POST', PATH, { score: false }],
      ['POST', PATH, { score: null }],
    ]);
    expect(seen[0]?.headers).toMatchObject({ 'content-type': 'application/json' });
    for (const name of 'x-api-key authorization x-tenant-id cookie traceparent baggage langsmith-trace'.split(' ')) {
      expect(seen[0]?.headers).not.toHaveProperty(name);
    }
  });

  test('sends a GET if requested, with an object as JSON', async () => {
    const { url, seen } = await serve((_, response) =>
      response.setHeader('content-type', 'text/html').end('<p>Thanks'),
    );
    const said = { score: 0.5, value: 'a&b', comment: 'so so?', correction: { answer: 'x' } };
    await submitFeedback(`${url}${PATH}?v=1`, said, { method: 'GET' });
    const sent = new URL(seen[0]?.url ?? '', url);
    expect([seen[0]?.method, sent.pathname, seen[0]?.body]).toEqual(['GET', PATH, '']);
    expect(Object.fromEntries(sent.searchParams)).toEqual({
      v: '1',
      ...said,
      score: '0.5',
      correction: '{"answer":"x"}',
    });
  });

  test.each(['plain text', '{', '5', '', 'say "yes" & no', 'two\nlines'])(
    'sends the correction %j as JSON text in a GET',
    async (correction) => {
      const { url, seen } = await serve((_, response) => response.end());
      await submitFeedback(url + PATH, { correction }, { method: 'GET' });
      const [link, sent] = [feedbackLink(url + PATH, { correction }), `${url}${seen[0]?.url}`];
      for (const each of [link, sent])
        expect(JSON.parse(new URL(each).searchParams.get('correction') ?? '')).toBe(correction);
    },
  );

  test('keeps the query of the URL in a POST', async () => {
    const { url, seen } = await serve((_, response) => response.end());
    await submitFeedback(`${url}${PATH}?sig=a%2Bb&x#part`, { score: 1 });
    expect(seen[0]?.url).toBe(`${PATH}?sig=a%2Bb&x`);
  });

  test('resolves with the response headers and leaves no connection', async () => {
    const { url, server } = await serve((_, response) => response.write('x'.repeat(100_000)));
    const closed = new Promise((resolve) => server.on('connection', (socket) => socket.on('close', resolve)));
    await submitFeedback(url + PATH, { score: 1 });
    await closed;
  });

  test.each<[number, string | undefined, string]>([
    [400, 'invalid', 'The service does not accept this feedback (400: why)'],
    [403, 'expired', 'The feedback URL has expired (403: why)'],
    [404, 'unknown', 'The service does not know the feedback URL or its run (404: why)'],
    [410, 'expired', 'The feedback URL has expired (410: why)'],
    [422, 'invalid', 'The service does not accept this feedback (422: why)'],
  ])('rejects %i as the refusal %s', async (status, reason, message) => {
    const { url, seen } = await serve((_, response) => response.writeHead(status).end(`${status} why`));
    const error = await thrownBy(submitFeedback(url + PATH, { score: 1 }));
    expect(error).toBeInstanceOf(FeedbackError);
    expect(error).toMatchObject({
      code: 'RUNSPAN_FEEDBACK_REFUSED',
      reason,
      message,
      cause: { status, detail: 'why' },
    });
    expect(seen).toHaveLength(1);
  });

  test.each([401, 409])('rejects %i as an ApiError, without a retry', async (status) => {
    const { url, seen } = await serve((_, response) => response.writeHead(status).end());
    expect(await thrownBy(submitFeedback(url + PATH, { score: 1 }))).toMatchObject({ name: 'ApiError', status });
    expect(seen).toHaveLength(1);
  });

  test.each<[unknown, string]>([
    [null, 'body: Expected an object'],
    [[], 'body: Expected an object'],
    ['good', 'body: Expected an object'],
    [{ score: Number.NaN }, 'body.score: Expected a finite number, true or false'],
    [{ score: Number.POSITIVE_INFINITY }, 'body.score: Expected a finite number, true or false'],
    [{ score: '1' }, 'body.score: Expected a finite number, true or false'],
    [{ value: [] }, 'body.value: Expected a finite number, true, false, a string or an object'],
    [{ comment: 5 }, 'body.comment: Expected a string'],
    [{ correction: 5 }, 'body.correction: Expected an object or a string'],
    [{ metadata: 'x' }, 'body.metadata: Expected an object'],
    [{ rating: 5 }, 'body.rating: Unknown field, or a field that this request cannot set'],
    [{ __proto__: null, toString: 'x' }, 'body.toString: Unknown field, or a field that this request cannot set'],
    [
      { score: 'a', comment: 5 },
      'body.score: Expected a finite number, true or false; body.comment: Expected a string',
    ],
    [
      { metadata: { big: 1n } },
      'body: Expected a value that JSON can represent (Do not know how to serialize a BigInt)',
    ],
  ])('refuses %o before it is sent', async (said, message) => {
    const { url, connections } = await serve();
    const error = await thrownBy(submitFeedback(url + PATH, said as FeedbackSubmission));
    expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST', message: `submitFeedback: ${message}` });
    expect(connections()).toBe(0);
  });

  test.each<[FeedbackSubmission, string]>([
    [{ metadata: { a: 1 } }, 'query.metadata: Expected no metadata; only POST can send it'],
    [
      { value: { a: 1 } },
      'query.value: Expected a finite number, true, false or a string; only POST can send an object',
    ],
  ])('refuses %j in a GET', async (said, message) => {
    const error = await thrownBy(submitFeedback('http://127.0.0.1:9/x', said, { method: 'GET' }));
    expect(error).toMatchObject({ message: `submitFeedback: ${message}` });
    expect(() => feedbackLink('http://127.0.0.1:9/x', said)).toThrow(`feedbackLink: ${message}`);
  });

  test.each<[string, object]>([
    ['method', { method: 'PUT' }],
    ['origin', { origin: 'example' }],
    ['origin', { origin: 'mailto:somebody@host.test' }],
    ['headers', { headers: { 'X-Api-Key': 'key-1' } }],
    ['headers', { headers: { authorization: 'Bearer key-1' } }],
    ['apiKey', { apiKey: 'key-1' }],
    ['timeoutMs', { timeoutMs: 0 }],
  ])('refuses the option %s: %j', async (name, options) => {
    const error = await thrownBy(submitFeedback('http://127.0.0.1:9/x', { score: 1 }, options));
    expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringContaining(`\`${name}\``) });
    expect(String(error)).not.toContain('key-1');
  });

  test.each<[unknown, string]>([
    ['', 'cannot be parsed'],
    [undefined, 'is missing'],
    [PATH, 'cannot be parsed'],
    [`https://user@host${PATH}`, 'contains a user or password'],
    [`http://host.test${PATH}`, 'the URL is a credential and is not sent over plain HTTP to another machine'],
  ])('refuses the URL %s: it %s', async (address, problem) => {
    const error = await thrownBy(submitFeedback(address as string, { score: 1 }));
    expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringContaining(problem) });
    expect(String(error)).not.toContain(TOKEN);
  });

  test('refuses a URL of another origin than `origin`', async () => {
    const { url, seen } = await serve((_, response) => response.end());
    await submitFeedback(url + PATH, { score: 1 }, { origin: `${url}/any/path` });
    const other = submitFeedback(url + PATH, { score: 1 }, { origin: 'https://user:pass@host.test' });
    await expect(other).rejects.toThrow(`Expected \`url\` to be a URL of https://host.test, got one of ${url}`);
    expect(seen).toHaveLength(1);
  });

  test('shows the URL neither in errors nor in hooks [security 1]', async () => {
    const { url } = await serve((request, response) => response.writeHead(404).end(`{"detail":"${request.url}"}`));
    const events: unknown[] = [];
    const hooks = { onRequest: (event: unknown) => void events.push(event) };
    for (const address of [PATH, `${PATH}/`, `/give?token=${TOKEN}`]) {
      const error = await thrownBy(submitFeedback(url + address, { comment: 'mine' }, { hooks }));
      expect(inspect([error, events], { depth: 20, showHidden: true })).not.toContain(TOKEN);
    }
    expect(events).toMatchObject([{ url: `${url}/api/v1/feedback/tokens/[secret]` }, {}, { url: `${url}/give` }]);
  });

  test('is recorded within a run, without the URL', async () => {
    const recorded = record();
    const { url } = await serve((_, response) => response.end('{}'));
    await withRun(startRun({ name: 'outer' }), () => submitFeedback(url + PATH, { score: 1 }));
    expect(recorded.run('submitFeedback')).toMatchObject({ run_type: 'tool', inputs: { score: 1 }, outputs: {} });
    expect(JSON.stringify(recorded.runs)).not.toContain(TOKEN);
  });
});

describe('feedbackLink', () => {
  test('returns the URL with the feedback in its query', () => {
    const said = { score: true, value: 'x y', comment: 'ja & nein', correction: { a: 'b' } };
    const query = `score=true&value=x+y&comment=ja+%26+nein&correction=${encodeURIComponent('{"a":"b"}')}`;
    expect(feedbackLink(`https://host${PATH}?v=1#x`, said)).toBe(`https://host${PATH}?v=1&${query}`);
    expect(feedbackLink(`https://host${PATH}`, {})).toBe(`https://host${PATH}`);
  });

  test('replaces feedback that is already in the query', () => {
    expect(feedbackLink(`https://host${PATH}?score=0&score=2`, { score: 1 })).toBe(`https://host${PATH}?score=1`);
  });
});
