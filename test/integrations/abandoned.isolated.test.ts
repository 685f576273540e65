// A call whose result nobody can read any more ends its run after the result is collected.
import { describe, expect, test } from 'vitest';
import { record } from '../instrument/recorder.ts';
import { collectAll, collectUntil } from '../support/garbage.ts';
import { chunksOf, localModel, recordWithFetch } from './local-openai.ts';
import { type Client, type Sdk, sdks } from './sdks.ts';

const programs: Readonly<Record<string, (sdk: Sdk, client: Client) => Promise<unknown>>> = {
  'an answer': async (sdk, client) => void sdk.create(client),
  'a stream': async (sdk, client) => void (await sdk.stream(client)),
  'an iterator': async (sdk, client) => {
    await (await sdk.stream(client))[Symbol.asyncIterator]().next();
  },
  'a response that it has not parsed': async (sdk, client) => void (await sdk.create(client).asResponse()),
  'both branches of a stream': async (sdk, client) => {
    const [left] = (await sdk.stream(client)).tee();
    await left[Symbol.asyncIterator]().next();
  },
};

test('a run of `fetch` is interrupted after the application drops the response', async () => {
  const recorder = recordWithFetch();
  const { url } = await localModel();
  await (async () => {
    const init = { method: 'POST', body: '{"model":"small","messages":[]}' };
    expect(await fetch(`${url}/v1/chat/completions`, init)).toHaveProperty('status', 200);
  })();
  await collectUntil(() => recorder.runs[0]?.end_time !== undefined, 500);
  expect(recorder.runs).toMatchObject([{ error: 'Interrupted: the result was garbage-collected before it ended' }]);
});

describe.each(sdks)('a run of %s', (_, sdk) => {
  const start = async () => {
    const recorder = record();
    const client = sdk.wrap(sdk.make(await localModel()));
    return { recorder, client };
  };

  test.each(Object.entries(programs))('is interrupted after the application drops %s', async (_, program) => {
    const { recorder, client } = await start();
    await program(sdk, client);
    await collectUntil(() => recorder.runs[0]?.end_time !== undefined, 500);
    expect(recorder.runs).toMatchObject([
      {
        error: 'Interrupted: the result was garbage-collected before it ended',
        end_time: expect.any(String),
        extra: { runspan_end_reason: 'interrupted' },
      },
    ]);
  });

  test('stays open while a helper, or an iterator without its stream, can still be read', async () => {
    const { recorder, client } = await start();
    const response = await sdk.create(client).asResponse();
    const helper = sdk.helper(client);
    const iterator = await (async () => (await sdk.stream(client))[Symbol.asyncIterator]())();
    await collectAll();
    await helper.done();
    await response.json();
    await chunksOf({ [Symbol.asyncIterator]: () => iterator });
    expect(recorder.runs.map(({ error, end_time }) => [error, typeof end_time])).toEqual(
      Array(3).fill([undefined, 'string']),
    );
  });
});
