import { afterAll, describe, test } from 'vitest';
import { MemoryStore, type Store } from '#src/receiver.ts';
import { cases } from '../support/campaign.ts';
import { checkDeletions } from './conformance/deletions.ts';
import { checkFigures } from './conformance/figures.ts';
import { anySteps, callSteps, identitySteps } from './conformance/generated.ts';
import { compareWithMemory, MODEL_TIMEOUT_MS } from './conformance/model.ts';
import { checkDeletedOrders, checkOrders } from './conformance/orders.ts';
import { storeCases } from './conformance/store-cases.ts';
import { withOwnTenants } from './conformance/support.ts';
import { applyTexts, expectWords } from './conformance/word-cases.ts';
import { indexAll, LIMITS, openLocalStore, storePath } from './local-store.ts';
import { expectExactNumbers } from './numbers.ts';

const path = storePath(afterAll);
const onDisk = await openLocalStore(path, LIMITS, afterAll);

describe.each<[string, (title: string) => Promise<Store>]>([
  ['a memory store', async () => new MemoryStore()],
  [
    'a store on disk',
    async (title) => {
      // A search would read the thousands of runs of earlier cases, one by one.
      await indexAll(path);
      return withOwnTenants(onDisk, title);
    },
  ],
])('%s', (_, storeFor) => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', async (title, run) =>
    run(await storeFor(title)),
  );

  test('every number is received and returned with all its digits', async () =>
    expectExactNumbers(await storeFor('numbers')));

  test('runs of simple ingestion are in the traces of the order parent first, in whichever order they arrive', async () =>
    checkOrders(await storeFor('orders'), cases(100)));

  test(
    'a key that is limited to a project sees figures of the runs in the project only',
    { timeout: MODEL_TIMEOUT_MS },
    async () => checkFigures(await storeFor('figures'), cases(60)),
  );

  test('a deleted trace stays deleted, and covers no run above it that arrives later', async () =>
    checkDeletedOrders(await storeFor('deleted orders'), cases(100)));
});

test('a store on disk finds the same words in its index', async () => {
  const store = withOwnTenants(onDisk, 'index');
  await applyTexts(store);
  await indexAll(path);
  await expectWords(store);
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

  test('after runs and spans of the same traces, and restarts', { timeout: MODEL_TIMEOUT_MS }, async () => {
    const ownPath = storePath();
    const stores = [await openLocalStore(ownPath)];
    const restart = async () => {
      await stores[0]?.close();
      stores[0] = await openLocalStore(ownPath);
    };
    await compareWithMemory({ stores, afterStep: restart }, identitySteps, cases(60));
  });

  test('after messages of runs that record the same calls', { timeout: MODEL_TIMEOUT_MS }, () =>
    compareWithMemory({ stores: [withOwnTenants(onDisk, 'calls')] }, callSteps, cases(60)),
  );
});

describe('exactly the traces that deletions select are gone after any late messages', () => {
  test('from a store in memory', async () => {
    await checkDeletions(() => {
      const store = new MemoryStore();
      return { store: async () => store, restart: async () => {} };
    }, cases(200));
  });

  test('from a store on disk that is opened again, or restored from a backup', {
    timeout: MODEL_TIMEOUT_MS,
  }, async () => {
    let file = storePath();
    let store = await openLocalStore(file);
    let restarts = 0;
    const restart = async (): Promise<void> => {
      restarts += 1;
      const backup = `${file}-${restarts}`;
      if (restarts % 2 === 0) await store.backup(backup);
      await store.close();
      if (restarts % 2 === 0) file = backup;
      store = await openLocalStore(file);
    };
    await checkDeletions(() => ({ store: async () => store, restart }), cases(40));
  });
});
