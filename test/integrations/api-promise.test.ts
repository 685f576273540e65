// Promises of SDK versions that the suite does not install, and races that a real client does not show.
import { describe, expect, test } from 'vitest';
import { followApiPromise } from '../../src/integrations/api-promise.ts';
import type { AnswerReader } from '../../src/integrations/call-reader.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { makeRun } from '../run/memory-sink.ts';
import { collected, collectGarbage, collectUntil } from '../support/garbage.ts';
import { told } from '../support/told.ts';

const reader: AnswerReader = { read: (value) => ({ outputs: { value } }) };

/** A promise with only the members that the integration requires. */
function makePromise(parse: () => unknown, headers: Record<string, string> = {}) {
  return {
    responsePromise: Promise.resolve({ response: new Response(null, { headers }) }),
    parseResponse: parse,
    parse() {
      return this.responsePromise.then(() => this.parseResponse());
    },
  };
}

/** A request of an early version, in which nothing references the promise while the response is pending. */
function makeRequest(response: Promise<Response>) {
  const responsePromise = response.then((settled) => ({ response: settled }));
  return {
    responsePromise,
    parseResponse: async (props: { response: Response }): Promise<unknown> => props.response.json(),
    asResponse: () => responsePromise.then((props) => props.response),
  };
}

/** A promise that derives promises as `openai` 7 does. */
const derivable = (parse: () => unknown) => ({
  ...makePromise(parse),
  _thenUnwrap: (transform: (value: unknown) => unknown) => makePromise(() => transform(parse())),
});

function follow<Promised extends object>(promise: Promised, read = reader) {
  const { run, record } = makeRun();
  return { promise, run, record, isFollowed: followApiPromise(promise, run, read, 'request-id') };
}

describe('a followed promise', () => {
  test.each([
    ['at once', () => 1],
    ['later', async () => 1],
  ])('ends its run with the value that its parser returns %s', async (_, parse) => {
    const { promise, record } = follow(makePromise(parse, { 'request-id': 'req_a' }));
    expect(await promise.parse()).toBe(1);
    expect(record()).toMatchObject({
      outputs: { value: 1 },
      end_time: expect.any(String),
      extra: { metadata: { request_id: 'req_a' } },
    });
  });

  test('stays lazy, and records the first of several parsed values', async () => {
    let parsed = 0;
    const { promise, record } = follow(makePromise(() => ++parsed));
    await promise.responsePromise;
    await new Promise(setImmediate);
    expect(parsed).toBe(0);
    expect(record()).not.toHaveProperty('end_time');
    await Promise.all([promise.parse(), promise.parse()]);
    expect(record()?.outputs).toEqual({ value: 1 });
  });

  test('leaves no rejection unhandled if an instrumentation has requested the answer', async () => {
    const unhandled = unhandledRejections();
    const responsePromise = Promise.reject(new RangeError('refused'));
    const parsedPromise = responsePromise.then(() => 1);
    parsedPromise.catch(() => {});
    const { record } = follow({ responsePromise, parseResponse: () => 1, parsedPromise });
    expect(await unhandled()).toEqual([]);
    expect(record()?.error).toMatch(/^RangeError: refused/);
  });

  test('ends its run if the answer cannot be read', async () => {
    const lines = told();
    const read = () => {
      throw new Error('unreadable');
    };
    const { promise, record } = follow(
      makePromise(() => 1),
      { read },
    );
    expect(await promise.parse()).toBe(1);
    expect(record()).toMatchObject({ outputs: { error: 'the answer could not be read' }, end_time: expect.anything() });
    expect(lines).toEqual(['warn: reading the answer of a model failed, the application is not affected: unreadable']);
  });

  test('ends its run with the streamed body that a client reads itself', async () => {
    const fold = () => {
      const events: unknown[] = [];
      return { add: (event: unknown) => events.push(event), result: () => events };
    };
    const response = new Response('data: 1\n\ndata: 2\n\n');
    const responsePromise = Promise.resolve({ response, options: { stream: true } });
    const call = {
      ...makePromise(() => 1),
      responsePromise,
      _responseProps() {
        return this.responsePromise;
      },
    };
    const { promise, record } = follow(call, { ...reader, fold });
    const { body } = (await promise._responseProps()).response;
    for await (const _ of body as AsyncIterable<unknown> & typeof body);
    expect(record()).toMatchObject({ outputs: { value: [1, 2] }, end_time: expect.any(String) });
  });

  test('may be collected before a derived promise is parsed', async () => {
    const make = () => {
      const { promise, record } = follow(derivable(() => 1));
      return { record, derived: promise._thenUnwrap((value) => `${value}!`) };
    };
    const { record, derived } = make();
    for (let turn = 0; turn < 20; turn++) {
      await new Promise(setImmediate);
      collectGarbage();
    }
    expect(record()).not.toHaveProperty('end_time');
    expect(await derived.parse()).toBe('1!');
    expect(record()).toMatchObject({ outputs: { value: 1 }, end_time: expect.anything() });
  });

  test('ends its run with the error of the request or of the parser', async () => {
    const boom = Object.assign(new Error('boom'), { requestID: 'r2' });
    const failed = follow(makeRequest(Promise.reject(boom)));
    await expect(failed.promise.responsePromise).rejects.toBe(boom);
    expect(failed.record()).toMatchObject({
      error: expect.stringMatching(/^Error: boom/),
      extra: { metadata: { request_id: 'r2' } },
    });
    const { promise, record } = follow(makeRequest(Promise.resolve(new Response('{'))));
    await expect(promise.parseResponse(await promise.responsePromise)).rejects.toThrow(SyntaxError);
    expect(record()?.error).toMatch(/^SyntaxError/);
  });

  test('keeps its run open while the response is pending, and interrupts it if nobody can read the response', async () => {
    let respond = (_: Response): void => {};
    const pending = new Promise<Response>((resolve) => {
      respond = resolve;
    });
    const make = (use: (request: ReturnType<typeof makeRequest>) => unknown) => {
      const { promise, run, record } = follow(makeRequest(pending));
      return { used: use(promise), dropped: new WeakRef(promise), run, record };
    };
    const waiting = make((request) => request.asResponse());
    const dropped = make(() => undefined);
    await collected(dropped.dropped);
    expect(waiting.run.isOpen).toBe(true);
    respond(new Response('', { status: 201, headers: { 'request-id': 'r1' } }));
    await waiting.used;
    await collectUntil(() => !dropped.run.isOpen, 500);
    expect(waiting.record()).toMatchObject({ outputs: { status: 201 }, extra: { metadata: { request_id: 'r1' } } });
    expect(waiting.record()).not.toHaveProperty('error');
    expect(dropped.record()).toMatchObject({
      outputs: { status: 201 },
      error: 'Interrupted: the result was collected before its end',
      extra: { metadata: { end_reason: 'interrupted' } },
    });
  });

  test.each([
    [Promise.resolve(1)],
    [{}],
    [{ responsePromise: 1, parseResponse: () => {} }],
    [{ responsePromise: Promise.resolve(1) }],
    [Object.freeze(makePromise(() => 1))],
  ])('is not any other value: %o', (value) => {
    const { isFollowed, record } = follow(value);
    expect(isFollowed).toBe(false);
    expect(record()).not.toHaveProperty('end_time');
  });
});
