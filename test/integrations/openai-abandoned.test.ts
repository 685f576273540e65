// What nobody reads ends its run when it is collected.
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { LocalModel } from '../../examples/local-model/server.js';
import { collectGarbage } from '../support/garbage.ts';
import { tea, tracedClient } from './local-openai.ts';

const ask = { model: 'small', messages: tea };
const streamed = { ...ask, stream: true as const };

const programs: Readonly<Record<string, (client: OpenAI, model: LocalModel) => Promise<void>>> = {
  'an answer': async (client) => {
    client.chat.completions.create(ask);
  },
  'a stream': async (client) => {
    await client.chat.completions.create(streamed);
  },
  'an iteration that was begun': async (client) => {
    await (await client.chat.completions.create(streamed))[Symbol.asyncIterator]().next();
  },
  'both branches of a stream': async (client) => {
    const [left] = (await client.chat.completions.create(streamed)).tee();
    await left?.[Symbol.asyncIterator]().next();
  },
};

describe('a run is interrupted when nobody can read any more', () => {
  test.each(Object.entries(programs))('%s', async (_, program) => {
    const { client, model, only } = await tracedClient();
    await program(client, model);
    for (let turn = 0; turn < 500 && only().end_time === undefined; turn++) {
      await new Promise(setImmediate);
      collectGarbage();
    }
    expect(only()).toMatchObject({
      error: 'Interrupted: the result was collected before its end',
      end_time: expect.any(String),
      extra: { metadata: { end_reason: 'interrupted' } },
    });
  });

  test('and not while somebody still can', async () => {
    const { client, only } = await tracedClient();
    const promise = client.chat.completions.create(ask);
    await promise.asResponse().then((response) => response.status);
    const later = client.chat.completions.stream(ask);
    for (let turn = 0; turn < 20; turn++) {
      await new Promise(setImmediate);
      collectGarbage();
    }
    await later.done();
    expect(only).toThrow('got 2');
  });
});
