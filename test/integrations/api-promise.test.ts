// Promises of SDK versions that the suite does not install, and races that a real client does not show.
import { describe, expect, test } from 'vitest';
import { followApiPromise } from '#src/integrations/api-promise.ts';
import type { AnswerReader } from '#src/services/answer.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { makeRun } from '../run/memory-sink.ts';
import { collected } from '../support/garbage.ts';
import { logLines } from '../support/log-lines.ts';

const reader: AnswerReader = { read: (value) => ({ outputs: { value } }) };

/** A promise with only the members that the integration requires. */
function makePromise(parse: () => unknown) {
  return {
    responsePromise: Promise.resolve({ response: new Response() }),
    parseResponse: parse,
    parse() {
      return this.responsePromise.then(() => this.parseResponse());
    },
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
    const lines = logLines();
    const read = () => {
      throw new Error('unreadable');
    };
    const { promise, record } = follow(
      makePromise(() => 1),
      { read },
    );
    expect(await promise.parse()).toBe(1);
    expect(record()).toMatchObject({
      outputs: { error: 'the response could not be read' },
      end_time: expect.anything(),
    });
    expect(lines).toEqual(['warn: reading a model response failed, the application is not affected: unreadable']);
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
      return { record, followed: new WeakRef(promise), derived: promise._thenUnwrap((value) => `${value}!`) };
    };
    const { record, followed, derived } = make();
    await collected(followed);
    expect(record()).not.toHaveProperty('end_time');
    expect(await derived.parse()).toBe('1!');
    expect(record()).toMatchObject({ outputs: { value: 1 }, end_time: expect.anything() });
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
