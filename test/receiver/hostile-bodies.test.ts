import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { forAllAsync } from '../support/campaign.ts';
import { BOUNDARY, CHILD, call, END, makeChild, makeRun, multipart, part, ROOT, raw, start } from './wire.ts';

const valid = multipart(
  part(`post.${ROOT}`, makeRun({ tags: ['a'], extra: { metadata: { a: 1 } } })),
  part(`post.${ROOT}.inputs`, { question: 'Where?' }),
  part(`attachment.${ROOT}.photo`, Buffer.from([1, 2, 3]), ['Content-Type: image/png']),
  part(`post.${CHILD}`, makeChild()),
  part(`patch.${CHILD}`, makeChild({ end_time: END })),
  part(`patch.${CHILD}.outputs`, { answer: 'There' }),
);

const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
const pieces = fc.constantFrom(
  `--${BOUNDARY}`,
  `\r\n--${BOUNDARY}\r\n`,
  `\r\n--${BOUNDARY}--`,
  '\r\n\r\n',
  `Content-Disposition: form-data; name="post.${ROOT}"`,
  `Content-Disposition: form-data; name="post.${ROOT}.inputs"\r\nContent-Type: application/json\r\n\r\n`,
  'Content-Length: 2\r\n',
  '{}',
  '"',
  '\0',
  '[[[[',
);
const assembled = fc.array(pieces, { maxLength: 20 }).map((all) => Buffer.from(all.join('')));
const mutated = fc
  .array(fc.tuple(fc.nat(valid.length - 1), fc.nat(40), bytes), { minLength: 1, maxLength: 3 })
  .map((edits) => edits.reduce((body, [at, cut, put]) => splice(body, at, cut, put), valid));
const splice = (body: Buffer, at: number, cut: number, put: Buffer) =>
  Buffer.concat([body.subarray(0, at), put, body.subarray(at + cut)]);
const json = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc.json().map((text) => `{"post":${text},"patch":[${text}]}`),
);
const record = fc
  .dictionary(
    fc.constantFrom(...Object.keys(makeChild({ inputs: {}, events: [], extra: {}, end_time: END }))),
    fc.jsonValue({ maxDepth: 2 }),
  )
  .map((fields) => JSON.stringify(makeChild({ inputs: {}, ...fields })));

/** Sends requests to a receiver, and checks that each gets 2xx or 4xx in JSON. */
async function check(
  send: fc.Arbitrary<{ path: string; type: string; body: Buffer | string; encoding?: string }>,
  strict = false,
) {
  const receiver = await start({ strict });
  await forAllAsync(100, [send], async ({ path, type, body, encoding }) => {
    const method = path === `/runs/${ROOT}` ? 'PATCH' : 'POST';
    const headers = { 'content-type': type, ...(encoding === undefined ? {} : { 'content-encoding': encoding }) };
    const { status, body: answer } = await call(receiver.url + path, method, body, headers);
    if (status === 202) expect(answer).toHaveProperty('accepted');
    else if (status !== 200) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
      expect(answer).toHaveProperty('detail');
    }
  });
  const orders = (await receiver.runs()).map((run) => run.dotted_order);
  expect(orders).toEqual(orders.toSorted());
}

describe.each([false, true])('every request with runs gets 2xx or 4xx in JSON (strict: %s)', (strict) => {
  test('multipart of random, assembled and mutated bytes', async () => {
    const type = `multipart/form-data; boundary=${BOUNDARY}`;
    await check(
      fc.oneof(mutated, assembled, bytes).map((body) => ({ path: '/runs/multipart', type, body })),
      strict,
    );
  });

  test('JSON of any kind', async () => {
    const path = fc.constantFrom('/runs', `/runs/${ROOT}`, '/runs/batch');
    await check(
      fc.record({ path, type: fc.constant('application/json'), body: fc.oneof(record, json, bytes) }),
      strict,
    );
  });
});

describe('every request gets 2xx or 4xx in JSON', () => {
  test('JSON of any kind for feedback, tokens, spans, logins and imports', async () => {
    const paths = '/feedback /feedback/tokens /v1/traces /login /query/import /runs/query'.split(' ');
    const path = fc.constantFrom(...paths);
    const names = 'run_id key feedback_key score value correction id expires_in resourceSpans'.split(' ');
    const inner = ['scopeSpans', 'spans', 'traceId', 'startTimeUnixNano', 'attributes', 'value', 'kvlistValue', 'days'];
    const some = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom(ROOT, 0, '1763622160123456789'));
    const nested = fc.dictionary(fc.constantFrom(...inner), fc.oneof(some, fc.array(some)));
    const value = fc.oneof(some, nested, fc.array(nested), fc.array(fc.record({ scopeSpans: fc.array(nested) })));
    const object = fc.dictionary(fc.constantFrom(...names), value).map((fields) => JSON.stringify(fields));
    await check(fc.record({ path, type: fc.constant('application/json'), body: fc.oneof(object, json, bytes) }));
  });

  test('any path, type and encoding', async () => {
    const segments = ['', ROOT, ...'runs query feedback tokens v1 traces info .. %2f % %00 ~'.split(' ')];
    const visible = fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code));
    const segment = fc.oneof(fc.constantFrom(...segments), fc.string({ unit: visible, maxLength: 10 }));
    const path = fc.array(segment, { maxLength: 5 }).map((all) => `/${all.join('/')}`);
    const type = fc.oneof(fc.constant('application/json'), fc.string({ unit: visible, minLength: 1, maxLength: 40 }));
    const encoding = fc.constantFrom('gzip', 'br', 'identity');
    await check(fc.record({ path, type, body: bytes, encoding }));
  });

  test('invalid HTTP', async () => {
    const receiver = await start();
    const lines = fc.array(
      fc.oneof(
        fc.constantFrom('POST /runs HTTP/1.1\r\n', 'Host: a\r\n', '\r\n', 'Transfer-Encoding: chunked\r\n'),
        fc.string(),
      ),
    );
    await forAllAsync(100, [lines], async (all) => {
      // The last line completes every unfinished request.
      await raw(receiver.url, `${all.join('')}\r\n\r\n\0\r\n\r\n`).catch(() => '');
      expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
    });
  });
});
