// Programs that leave the rejection of a call unhandled.
import { unhandledRejections } from '../base/rejections.ts';
import { chunksOf } from './local-openai.ts';
import type { Client, Program, Sdk } from './sdks.ts';

type Way = (sdk: Sdk, client: Client) => unknown;

const failing = { model: 'fail-400' };

const ways: Readonly<Record<string, Way>> = {
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

/** Logs the class and the message of each unhandled rejection. Waits until there is one. */
export const rejectionPrograms: Readonly<Record<string, Program>> = Object.fromEntries(
  Object.entries(ways).map(([title, way]) => [`an unhandled rejection: ${title}`, loggingRejections(way)]),
);

function loggingRejections(way: Way): Program {
  return async ({ client, sdk, log }) => {
    const unhandled = unhandledRejections();
    void way(sdk, client);
    while ((await unhandled()).length === 0);
    log.push((await unhandled()).map((reason) => [(reason as Error).constructor.name, String(reason)]));
  };
}
