// The words of the service about a refusal, in the log line, in `lastError` and in the detail of `onDrop`.
import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { forAllAsync } from '../support/campaign.ts';
import { advance, delivery } from '../support/delivery.ts';

const key = 'own-key-0123456789';
const lsv2 = `lsv2_pt_${'0123456789abcdef'.repeat(2)}`;

it.each<[what: string, body: string, words: string | undefined, type?: string]>([
  ['a detail', '{"detail":"The read key can only read"}', 'The read key can only read'],
  ['a message', '{"message":"quota of workspace exceeded"}', 'quota of workspace exceeded'],
  ['an error', '{"error":"no such project"}', 'no such project'],
  ['a nested error', '{"error":{"type":"x","message":"no such model"}}', 'no such model'],
  ['a list of errors', '{"detail":[{"loc":["body","inputs"],"msg":"Field required"}]}', 'body.inputs: Field required'],
  ['plain text', 'Forbidden by policy\n', 'Forbidden by policy', 'text/plain; charset=utf-8'],
  ['control characters', '{"detail":"a\\u0000b\\u001b[31m\\nc\\u202ed"}', String.raw`a b [31m c\u202ed`],
  ['the own key', `{"detail":"unknown key ${key}"}`, 'unknown key [Redacted]'],
  ['another key', `{"detail":"unknown key ${lsv2}"}`, 'unknown key [Redacted]'],
  ['a part of the own key', `{"detail":"unknown key ${key.slice(0, 12)}…"}`, undefined],
  ['the own key with a line break', `{"detail":"unknown key ${key.slice(0, 9)}\\n${key.slice(9)}"}`, undefined],
  ['the token of a header without its scheme', '{"detail":"bad token secret-token-9876"}', 'bad token [Redacted]'],
  ['a title', '{"title":"Payment required","status":402}', 'Payment required'],
  ['a long text', `{"detail":"${'x'.repeat(5_000)}"}`, `${'x'.repeat(200)}…`],
  ['a web page', '<html>Forbidden</html>', undefined, 'text/html'],
  ['no text', '{"detail":{"code":5}}', undefined],
  ['deep nesting', `${'{"detail":'.repeat(9)}"deep"${'}'.repeat(9)}`, undefined],
  ['JSON that is cut', '{"detail":"The re', undefined],
  ['nothing', '', undefined],
])('%s is repeated as it is read', async (_, body, words, type = 'application/json') => {
  const headers = { 'content-type': type };
  const { whole, stats, close, lines, details } = await delivery({
    options: { apiKey: key, headers: { authorization: 'Bearer secret-token-9876' } },
    reply: () => ({ status: 422, headers, body }),
  });
  whole();
  await advance(5_000);
  await close({ timeoutMs: 0 });
  const error = words === undefined ? 'status 422' : `status 422, "${words}"`;
  expect(stats().lastError?.message).toBe(error);
  expect(details).toEqual([error]);
  expect(lines[0]).toContain(`failed: ${error}; the runs are retried`);
});

it('the body of a response changes nothing about its runs, whatever it contains', async () => {
  const key = fc.constantFrom(...'detail message error loc msg partialSuccess rejectedSpans toString'.split(' '));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 5 }, fc.jsonValue(), fc.dictionary(key, tie('value')), fc.array(tie('value'))),
  }));
  const types = fc.constantFrom('application/json', 'text/plain', 'application/x-protobuf', 'text/html');
  const bytes = fc.uint8Array({ maxLength: 20 }).map((body) => Buffer.from(body));
  const body = fc.oneof(
    fc.dictionary(key, value).map((fields) => JSON.stringify(fields)),
    bytes,
  );
  await forAllAsync(200, [body, types], async (given, type) => {
    let status = 422;
    const { whole, exporter, stats, close } = await delivery({
      reply: () => ({ status, headers: { 'content-type': type }, body: given }),
    });
    whole();
    await advance(600);
    expect(stats()).toMatchObject({ inFlight: 1, lastError: { message: expect.stringMatching(/^status 422/) } });
    status = 202;
    void exporter.flush();
    await advance(2_000);
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
    await close();
  });
});

it('the guess about a status comes after the words of the service', async () => {
  const { whole, stats } = await delivery({
    options: { apiKey: key },
    reply: () => ({ status: 403, body: '{"detail":"The read key can only read"}' }),
  });
  whole();
  await advance(5_000);
  const guess = 'the API key, the path of the endpoint or the content of a run may be the cause';
  expect(stats().lastError?.message).toBe(`status 403, "The read key can only read": ${guess}`);
});
