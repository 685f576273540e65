// Ways to leave the rejection of a call unhandled. Peers run these with other versions of an SDK.
import { unhandledRejections } from '../base/rejections.ts';
import { chunksOf } from './local-openai.ts';
import type { Client, Sdk } from './sdks.ts';

const failing = { model: 'fail-400' };

export const ways: Readonly<Record<string, (sdk: Sdk, client: Client) => unknown>> = {
  'a promise': (sdk, client) => sdk.create(client, failing),
  'then alone': (sdk, client) => sdk.create(client, failing).then(() => {}),
  finally: (sdk, client) => sdk.create(client, failing).finally(() => {}),
  withResponse: (sdk, client) => sdk.create(client, failing).withResponse(),
  asResponse: (sdk, client) => sdk.create(client, failing).asResponse(),
  'asResponse, whose rejection is handled, and the answer': (sdk, client) => {
    const promise = sdk.create(client, failing);
    promise.asResponse().catch(() => {});
    promise.then(() => {});
  },
  'the answer, and asResponse': (sdk, client) => {
    const promise = sdk.create(client, failing);
    promise.then(() => {});
    promise.asResponse();
  },
  parse: (sdk, client) => sdk.parse(client, failing),
  'a response that is not JSON': (sdk, client) => sdk.create(client, { model: 'malformed' }).then(() => {}),
  'a stream': async (sdk, client) => chunksOf(await sdk.stream(client, { model: 'fail-mid-stream' })),
  'a step of a stream': async (sdk, client) => {
    const iterator = (await sdk.stream(client, { model: 'malformed' }))[Symbol.asyncIterator]();
    for (let step = 0; step < 10; step++) void iterator.next();
  },
  'a helper': (sdk, client) => sdk.helper(client, failing).on(sdk.textEvent, () => {}),
  'a helper that is aborted': (sdk, client) => {
    const helper = sdk.helper(client, { model: 'hang-mid-stream' });
    helper.on(sdk.textEvent, () => helper.abort());
  },
};

/** Returns the class and the message of each unhandled rejection. Waits until there is one. */
export async function rejectionsOf(
  way: (sdk: Sdk, client: Client) => unknown,
  sdk: Sdk,
  client: Client,
): Promise<[name: string, message: string][]> {
  const unhandled = unhandledRejections();
  void way(sdk, client);
  let reasons = await unhandled();
  while (reasons.length === 0) reasons = await unhandled();
  return (await unhandled()).map((reason) => [(reason as Error).constructor.name, String(reason)]);
}
