import { describe, expect, test } from 'vitest';
import { followApiPromise } from '../../src/integrations/api-promise.ts';
import type { AnswerReader } from '../../src/integrations/call-reader.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { makeRun } from '../run/memory-sink.ts';
import { collected, collectGarbage } from '../support/garbage.ts';
import { told } from '../support/told.ts';

const reader: AnswerReader = { read: (value) => ({ outputs: { value } }) };

/** As little of the SDKs' promise as is relied on. */
function makePromise(parse: () => unknown, headers: Record<string, string> = {}) {
  return {
    responsePromise: Promise.resolve({ response: new Response(null, { headers }) }),
    parseResponse: parse,
    parse() {
      return this.responsePromise.then(() => this.parseResponse());
    },
  };
}

describe('a followed promise', () => {
  test.each([
    ['at once', () => 1],
    ['later', async () => 1],
  ])('ends its run with what its parser gives %s', async (_, parse) => {
    const { run, record } = makeRun();
    const promise = makePromise(parse, { 'request-id': 'req_a' });
    expect(followApiPromise(promise, run, reader, 'request-id')).toBe(true);
    expect(await promise.parse()).toBe(1);
    expect(record()).toMatchObject({ outputs: { value: 1 }, extra: { metadata: { request_id: 'req_a' } } });
    expect(record()).toHaveProperty('end_time');
  });

  test('is not read, and its run stays open, until somebody asks', async () => {
    const { run, record } = makeRun();
    let parsed = 0;
    const promise = makePromise(() => ++parsed);
    followApiPromise(promise, run, reader, 'request-id');
    await promise.responsePromise;
    await new Promise(setImmediate);
    expect(parsed).toBe(0);
    expect(record()).not.toHaveProperty('end_time');
    await promise.parse();
    expect(parsed).toBe(1);
  });

  test('that an instrumentation has asked already leaves no rejection of ours unhandled', async () => {
    const { run, record } = makeRun();
    const unhandled = unhandledRejections();
    const failure = new RangeError('refused');
    const responsePromise = Promise.reject(failure);
    const promise = { responsePromise, parseResponse: () => 1, parsedPromise: responsePromise.then(() => 1) };
    promise.parsedPromise.catch(() => {});
    followApiPromise(promise, run, reader, 'request-id');
    expect(await unhandled()).toEqual([]);
    expect(record()?.error).toMatch(/^RangeError: refused/);
  });

  test('that is read twice has the first answer', async () => {
    const { run, record } = makeRun();
    let parsed = 0;
    const promise = makePromise(() => ++parsed);
    followApiPromise(promise, run, reader, 'request-id');
    await Promise.all([promise.parse(), promise.parse()]);
    expect(record()?.outputs).toEqual({ value: 1 });
  });

  test('whose answer cannot be read ends its run all the same', async () => {
    const lines = told();
    const { run, record } = makeRun();
    const promise = makePromise(() => 1);
    const broken: AnswerReader = {
      read: () => {
        throw new Error('unreadable');
      },
    };
    followApiPromise(promise, run, broken, 'request-id');
    expect(await promise.parse()).toBe(1);
    expect(record()).toMatchObject({ outputs: { error: 'the answer could not be read' }, end_time: expect.anything() });
    expect(lines).toEqual(['warn: reading the answer of a model failed, the application is not affected: unreadable']);
  });
});

describe('a promise that is derived from a followed one, and parses by itself,', () => {
  /** As the seventh version of `openai` derives them. */
  const derivable = (parse: () => unknown) => ({
    ...makePromise(parse),
    _thenUnwrap: (transform: (value: unknown) => unknown) => makePromise(() => transform(parse())),
  });

  test('ends the run with what is transformed', async () => {
    const { run, record } = makeRun();
    const promise = derivable(() => 1);
    followApiPromise(promise, run, reader, 'request-id');
    expect(await promise._thenUnwrap((value) => `${value}!`).parse()).toBe('1!');
    expect(record()).toMatchObject({ outputs: { value: 1 }, end_time: expect.anything() });
  });

  test('may be read when the first one is gone', async () => {
    const { run, record } = makeRun();
    let promise: ReturnType<typeof derivable> | undefined = derivable(() => 1);
    followApiPromise(promise, run, reader, 'request-id');
    const derived = promise._thenUnwrap((value) => value);
    promise = undefined;
    for (let turn = 0; turn < 20; turn++) {
      await new Promise(setImmediate);
      collectGarbage();
    }
    expect(record()).not.toHaveProperty('end_time');
    await derived.parse();
    expect(record()?.outputs).toEqual({ value: 1 });
  });
});

describe('a request', () => {
  /** As the first versions have it: nothing that waits for the response holds the promise. */
  function makeRequest(response: Promise<Response>) {
    const responsePromise = response.then((settled) => ({ response: settled }));
    return {
      responsePromise,
      parseResponse: async (props: { response: Response }): Promise<unknown> => props.response.json(),
      asResponse: () => responsePromise.then((props) => props.response),
    };
  }

  test('that fails ends its run with the error, and the id that the error has', async () => {
    const { run, record } = makeRun();
    const boom = Object.assign(new Error('boom'), { requestID: 'r2' });
    const promise = makeRequest(Promise.reject(boom));
    followApiPromise(promise, run, reader, 'request-id');
    await expect(promise.responsePromise).rejects.toBe(boom);
    expect(record()).toMatchObject({
      error: expect.stringMatching(/^Error: boom/),
      extra: { metadata: { request_id: 'r2' } },
    });
  });

  test('whose answer cannot be parsed ends its run with that error', async () => {
    const { run, record } = makeRun();
    const promise = makeRequest(Promise.resolve(new Response('{')));
    followApiPromise(promise, run, reader, 'request-id');
    await expect(promise.parseResponse(await promise.responsePromise)).rejects.toThrow(SyntaxError);
    expect(record()?.error).toMatch(/^SyntaxError/);
  });

  test('is not taken for dropped while its response is waited for', async () => {
    const { run, record } = makeRun();
    let respond = (_: Response): void => {};
    const request = new Promise<Response>((resolve) => {
      respond = resolve;
    });
    const response = (() => {
      const promise = makeRequest(request);
      followApiPromise(promise, run, reader, 'request-id');
      return promise.asResponse();
    })();
    for (let turn = 0; turn < 20; turn++) {
      collectGarbage();
      await new Promise(setImmediate);
    }
    expect(run.isOpen).toBe(true);
    respond(new Response('', { headers: { 'request-id': 'r1' } }));
    expect((await response).status).toBe(200);
    expect(record()).toMatchObject({ outputs: { status: 200 }, end_time: expect.any(String) });
    expect(record()?.extra?.metadata).toEqual({ request_id: 'r1' });
  });

  test('is interrupted where nobody can read its response', async () => {
    const { run, record } = makeRun();
    let respond = (_: Response): void => {};
    const dropped = (() => {
      const promise = makeRequest(
        new Promise((resolve) => {
          respond = resolve;
        }),
      );
      followApiPromise(promise, run, reader, 'request-id');
      return new WeakRef(promise);
    })();
    respond(new Response('', { status: 201 }));
    await collected(dropped);
    for (let turn = 0; turn < 500 && run.isOpen; turn++) {
      collectGarbage();
      await new Promise(setImmediate);
    }
    expect(record()).toMatchObject({
      outputs: { status: 201 },
      error: 'Interrupted: the result was collected before its end',
      extra: { metadata: { end_reason: 'interrupted' } },
    });
  });
});

test.each([
  [Promise.resolve(1)],
  [{}],
  [{ responsePromise: 1, parseResponse: () => {} }],
  [{ responsePromise: Promise.resolve(1) }],
  [Object.freeze(makePromise(() => 1))],
])('what is no such promise is left to others: %o', (value) => {
  const { run, record } = makeRun();
  expect(followApiPromise(value, run, reader, 'request-id')).toBe(false);
  expect(record()).not.toHaveProperty('end_time');
});
