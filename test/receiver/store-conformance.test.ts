import { describe, expect, test } from 'vitest';
import { STORE_METHODS } from '#src/receiver/store/store.ts';
import { DEFAULT_SCOPE, MemoryStore, type Scope, type Store } from '#src/receiver.ts';
import { storeCases } from './conformance/store-cases.ts';
import { openLocalStore } from './local-store.ts';

describe.each<[string, () => Promise<Store>]>([
  ['a memory store', async () => new MemoryStore()],
  ['a store on disk', () => openLocalStore()],
])('%s', (_, makeStore) => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(await makeStore());
  });
});

/** Returns a store in which one method receives another scope. */
function changed(method: keyof Store, scopeOf: (scope: Scope) => Scope): Store {
  const store = new MemoryStore();
  const call = store[method] as (...args: unknown[]) => unknown;
  const replaced = (scope: Scope, ...args: unknown[]) => call.call(store, scopeOf(scope), ...args);
  const others = STORE_METHODS.map((name) => [name, (store[name] as typeof call).bind(store)]);
  return Object.fromEntries([...others, [method, replaced]]);
}

async function failuresOf(makeStore: () => Store): Promise<string[]> {
  const titles: string[] = [];
  const cases = storeCases.filter(({ title }) => title.startsWith('Each '));
  for (const { title, run } of cases) await run(makeStore()).catch(() => void titles.push(title));
  return titles;
}

describe('the cases of a store fail', () => {
  const OF_ALL: readonly (keyof Store)[] = ['tokenSecrets', 'addTokenSecret', 'putJob', 'jobs'];
  const OF_TENANTS = STORE_METHODS.filter((method) => !OF_ALL.includes(method));
  test.each(OF_TENANTS)('if %s ignores the tenant', async (method) => {
    expect(
      await failuresOf(() => changed(method, ({ tenant: _, ...scope }) => ({ ...scope, ...DEFAULT_SCOPE }))),
    ).not.toEqual([]);
  });

  const OF_RUNS = [
    'runs',
    'attachment',
    'projects',
    'traces',
    'threads',
    'list',
    'outline',
    'details',
    'payload',
    'statistics',
    'suggestions',
    'feedback',
    'feedbackWithId',
    'removable',
    'remove',
  ] as const;
  test.each(OF_RUNS)('if %s ignores the project', async (method) => {
    expect(await failuresOf(() => changed(method, ({ tenant }) => ({ tenant })))).not.toEqual([]);
  });
});
