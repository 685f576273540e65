import { expect, test } from 'vitest';
import { type AnswerShape, followApiPromise } from '../../src/integrations/api-promise.ts';
import { makeRun } from '../run/memory-sink.ts';
import { told } from '../support/told.ts';
import { collected } from './collected.ts';

const shape: AnswerShape = {
  requestIdHeader: 'x-id',
  record: (run, answer) => run.set({ outputs: { answer } }),
  fold: () => ({ push: () => true, record: () => {} }),
};

/** As older versions have it: nothing that waits for the response holds the promise. */
function makePromise(response: Promise<Response>) {
  const responsePromise = response.then((settled) => ({ response: settled }));
  return {
    responsePromise,
    parseResponse: async (props: { response: Response }): Promise<unknown> => props.response.json(),
    asResponse: () => responsePromise.then((props) => props.response),
  };
}

const answer = () => new Response('{"a":1}', { headers: { 'x-id': 'r1' } });

test('records what is parsed of the response, and the id of the request', async () => {
  const { run, record } = makeRun();
  const promise = makePromise(Promise.resolve(answer()));
  expect(followApiPromise(promise, run, shape)).toBe(true);
  expect(Object.keys(promise)).toEqual(['responsePromise', 'parseResponse', 'asResponse']);
  expect(await promise.parseResponse(await promise.responsePromise)).toEqual({ a: 1 });
  expect(record()).toMatchObject({ outputs: { answer: { a: 1 } }, extra: { metadata: { request_id: 'r1' } } });
});

test('ends the run although the answer cannot be recorded', async () => {
  const lines = told();
  const { run } = makeRun();
  const promise = makePromise(Promise.resolve(answer()));
  followApiPromise(promise, run, { ...shape, record: () => expect.unreachable() });
  expect(await promise.parseResponse(await promise.responsePromise)).toEqual({ a: 1 });
  expect(run.isOpen).toBe(false);
  expect(lines).toHaveLength(1);
});

test('ends the run with the error of the request, and with that of parsing', async () => {
  const boom = Object.assign(new Error('boom'), { requestID: 'r2' });
  const request = makeRun();
  const failed = makePromise(Promise.reject(boom));
  followApiPromise(failed, request.run, shape);
  await expect(failed.responsePromise).rejects.toBe(boom);
  expect(request.record()).toMatchObject({
    error: expect.stringMatching(/^Error: boom/),
    extra: { metadata: { request_id: 'r2' } },
  });

  const parsing = makeRun();
  const garbled = makePromise(Promise.resolve(new Response('{')));
  followApiPromise(garbled, parsing.run, shape);
  await expect(garbled.parseResponse(await garbled.responsePromise)).rejects.toThrow(SyntaxError);
  expect(parsing.record()?.error).toMatch(/^SyntaxError/);
});

test('does not take a request for dropped whose response is waited for', async () => {
  const { run, record } = makeRun();
  let respond = (_: Response): void => {};
  let dropped: WeakRef<object> = new WeakRef({});
  const response = (() => {
    const promise = makePromise(
      new Promise((resolve) => {
        respond = resolve;
      }),
    );
    followApiPromise(promise, run, shape);
    dropped = new WeakRef(promise);
    return promise.asResponse();
  })();
  await collected(dropped);
  expect(run.isOpen).toBe(true);
  respond(answer());
  expect((await response).status).toBe(200);
  expect(run.isOpen).toBe(false);
  expect(record()?.extra?.metadata).toEqual({ request_id: 'r1' });
});

test('takes one for dropped that nobody waits for', async () => {
  const { run, record } = makeRun();
  const dropped = (() => {
    const promise = makePromise(new Promise(() => {}));
    followApiPromise(promise, run, shape);
    return new WeakRef(promise);
  })();
  await collected(dropped);
  expect(run.isOpen).toBe(false);
  expect(record()?.extra?.metadata).toEqual({ end_reason: 'interrupted' });
});

test.each([{}, Promise.resolve(1), { responsePromise: Promise.resolve(1) }, { responsePromise: 1, parseResponse: 1 }])(
  'leaves %o alone',
  (value) => {
    const { run } = makeRun();
    expect(followApiPromise(value, run, shape)).toBe(false);
    expect(run.isOpen).toBe(true);
  },
);
