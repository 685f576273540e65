import { afterAll, describe, test } from 'vitest';
import { MemoryStore, type Store } from '#src/receiver.ts';
import { cases } from '../support/campaign.ts';
import { anySteps, callSteps } from './conformance/generated.ts';
import { compareWithMemory, MODEL_TIMEOUT_MS } from './conformance/model.ts';
import { storeCases } from './conformance/store-cases.ts';
import { withOwnTenants } from './conformance/support.ts';
import { indexAll, LIMITS, openLocalStore, storePath } from './local-store.ts';
import { expectExactNumbers } from './numbers.ts';

const path = storePath(afterAll);
const onDisk = await openLocalStore(path, LIMITS, afterAll);

describe.each<[string, (title: string) => Store]>([
  ['a memory store', () => new MemoryStore()],
  ['a store on disk', (title) => withOwnTenants(onDisk, title)],
])('%s', (_, storeFor) => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', (title, run) => run(storeFor(title)));

  test('every number is received and returned with all its digits', () => expectExactNumbers(storeFor('numbers')));
});

describe('a store on disk answers like a store in memory', () => {
  let step = 0;
  const afterStep = async () => {
    step += 1;
    // Some of the searches find what is in the index, others what is not yet.
    if (step % 3 === 0) await indexAll(path);
  };

  test('after any messages in any order', { timeout: MODEL_TIMEOUT_MS }, () =>
    compareWithMemory({ stores: [withOwnTenants(onDisk, 'any')], afterStep }, anySteps, cases(40)),
  );

  test('after messages of runs that record the same calls', { timeout: MODEL_TIMEOUT_MS }, () =>
    compareWithMemory({ stores: [withOwnTenants(onDisk, 'calls')] }, callSteps, cases(60)),
  );
});
