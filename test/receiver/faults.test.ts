import { describe, expect, test } from 'vitest';
import type { Receiver, ReceiverFaults } from '#src/receiver.ts';
import { CHILD, call, END, makeChild, makeRun, part, type Reply, ROOT, sendJson, sendParts, start } from './wire.ts';

const sendRoot = (receiver: Receiver): Promise<Reply> => sendParts(receiver, part(`post.${ROOT}`, makeRun()));

describe('the fault `fail`', () => {
  test('applies to `times` requests, which store nothing', async () => {
    const receiver = await start();
    receiver.setFaults({ fail: { status: 503, times: 2, retryAfterSeconds: 7 } });
    for (const _ of [1, 2]) {
      const { status, headers, body } = await sendRoot(receiver);
      expect([status, headers['retry-after'], body.detail]).toEqual([503, '7', 'The fault `fail`']);
      expect(await receiver.runs()).toEqual([]);
    }
    expect((await sendRoot(receiver)).status).toBe(202);
    expect(await receiver.runs()).toHaveLength(1);
  });

  test('applies to every format until it is removed, but not to queries', async () => {
    const receiver = await start();
    receiver.setFaults({ fail: { status: 429 } });
    expect((await sendRoot(receiver)).status).toBe(429);
    expect((await sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} }))).status).toBe(429);
    expect((await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, { end_time: END })).status).toBe(429);
    const span = {
      traceId: 'a'.repeat(32),
      spanId: 'b'.repeat(16),
      name: 'a',
      startTimeUnixNano: `${Date.now()}000000`,
    };
    const spans = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] };
    expect((await sendJson(receiver, 'POST', '/v1/traces', spans)).status).toBe(429);
    const { headers } = await sendJson(receiver, 'POST', '/runs/batch', { post: [makeRun()] });
    expect(headers['retry-after']).toBeUndefined();
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
    expect((await sendJson(receiver, 'POST', '/runs/query', { trace: ROOT })).status).toBe(200);
    receiver.setFaults({});
    expect((await sendRoot(receiver)).status).toBe(202);
  });

  test('does not apply to malformed requests', async () => {
    const receiver = await start();
    receiver.setFaults({ fail: { status: 500, times: 1 } });
    expect((await sendJson(receiver, 'POST', '/runs', '{')).status).toBe(400);
    expect((await sendRoot(receiver)).status).toBe(500);
    expect((await sendRoot(receiver)).status).toBe(202);
  });
});

test('the fault `delayMs` delays every response, including errors', async () => {
  const receiver = await start();
  receiver.setFaults({ delayMs: 300, fail: { status: 503, times: 1 } });
  const answered: string[] = [];
  const late = sendRoot(receiver).then(({ status }) => answered.push(`late ${status}`));
  await call(`${receiver.url}/info`, 'GET');
  answered.push('info 200');
  await late;
  expect(answered).toEqual(['info 200', 'late 503']);
});

test('the fault `reject` refuses the request with 422 and names the runs', async () => {
  const receiver = await start();
  receiver.setFaults({ reject: ({ kind, id, fields }) => kind === 'post' && id === CHILD && fields.name === 'call' });
  const { status, body } = await sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun()),
    part(`post.${CHILD}`, makeChild()),
  );
  const msg = 'The fault `reject`';
  expect([status, body.detail]).toEqual([422, [{ loc: ['body', CHILD], msg, type: 'fault' }]]);
  expect(await receiver.runs()).toEqual([]);
  expect((await sendRoot(receiver)).status).toBe(202);
});

describe('invalid faults', () => {
  test.each<[unknown, string]>([
    [null, 'Expected the faults to be an object, got null'],
    [{ fails: {} }, 'Expected the faults to contain only fail, delayMs, reject, got `fails`'],
    [{ fail: 503 }, 'Expected `fail` to be an object with a `status`, got the number 503'],
    [{ fail: {} }, 'Expected `fail` to be an object with a `status`'],
    [{ fail: { status: 399 } }, 'Expected `status` to be a whole number from 400 to 599, got the number 399'],
    [{ fail: { status: 600 } }, 'Expected `status` to be a whole number from 400 to 599, got the number 600'],
    [{ fail: { status: undefined } }, 'Expected `fail` to be an object with a `status`'],
    [{ fail: { status: 503, times: 0 } }, 'Expected `times` to be a whole number from 1, got the number 0'],
    [{ fail: { status: 503, retryAfterSeconds: -1 } }, 'Expected `retryAfterSeconds` to be a whole number from 0'],
    [{ fail: { status: 503, retryAfterSeconds: 86_401 } }, 'got the number 86401'],
    [{ fail: { status: 503, code: 1 } }, 'Expected `fail` to contain only status, times, retryAfterSeconds'],
    [{ delayMs: -1 }, 'Expected `delayMs` to be a whole number from 0 to 60000, got the number -1'],
    [{ delayMs: 60_001 }, 'Expected `delayMs` to be a whole number from 0 to 60000, got the number 60001'],
    [{ reject: true }, 'Expected `reject` to be a function, got true'],
  ])('%j are refused, and earlier faults stay', async (faults, message) => {
    const receiver = await start();
    receiver.setFaults({ fail: { status: 418 } });
    expect(() => receiver.setFaults(faults as ReceiverFaults)).toThrow(message);
    expect((await sendRoot(receiver)).status).toBe(418);
  });

  test('are those outside of the limits only', async () => {
    const receiver = await start();
    for (const faults of [
      { fail: { status: 400, retryAfterSeconds: 0 } },
      { fail: { status: 599, times: 1, retryAfterSeconds: 86_400 } },
      { delayMs: 0 },
      { delayMs: 60_000 },
    ])
      expect(() => receiver.setFaults(faults)).not.toThrow();
  });
});
