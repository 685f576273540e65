import { describe, test } from 'vitest';
import { MemoryStore, type Store } from '../../src/receiver.ts';
import { storeCases } from '../../src/store-testing.ts';
import { openLocalStore } from './local-store.ts';

describe.each<[string, () => Promise<Store>]>([
  ['a memory store', async () => new MemoryStore()],
  ['a store on disk', () => openLocalStore()],
])('%s', (_, makeStore) => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(await makeStore());
  });
});
