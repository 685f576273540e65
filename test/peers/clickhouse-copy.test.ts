// `runspan store copy` from and to ClickHouse, which runs inside another process (see clickhouse/shim.mjs).
import { expect, onTestFinished, test } from 'vitest';
import { ALL_RUNS } from '#src/receiver/filter/run-filter.ts';
import type { Scope } from '#src/receiver.ts';
import { feedback, id, patch, post, SCOPE, simple } from '../receiver/conformance/support.ts';
import { openLocalStore, storePath } from '../receiver/local-store.ts';
import { runRunspan } from '../support/program.ts';
import { startDatabase } from './clickhouse/database.ts';

const ACME = { tenant: 'acme' };
const ATTACHMENT = { name: 'a', mimeType: 'text/plain', bytes: new Uint8Array([1, 2]) };

async function runspan(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runRunspan(args);
  expect(code, stderr).toBe(0);
  return stdout;
}

async function contentOf(path: string): Promise<unknown> {
  const store = await openLocalStore(path);
  const runs = async (scope: Scope): Promise<unknown[]> => {
    const all: unknown[] = [];
    for await (const text of store.runs(scope, { filter: ALL_RUNS })) all.push(JSON.parse(text));
    return all;
  };
  const content = {
    runs: [await runs(SCOPE), await runs(ACME)],
    feedback: await store.feedback(SCOPE, [id(1)]),
    attachment: await store.attachment(SCOPE, id(2), 'a'),
    exact: await store.payload(ACME, id(7), 'inputs'),
    revoked: await store.revokedTokens(ACME),
    secrets: await store.tokenSecrets(),
  };
  await store.close();
  return content;
}

test('runspan store copy copies a file to ClickHouse, to another database and to a new file', async () => {
  const [database, another] = [await startDatabase(), await startDatabase()];
  onTestFinished(async () => void (await Promise.all([database.stop(), another.stop()])));
  const [url, other] = [database.url, another.url];

  const [first, last] = [storePath(), storePath()];
  const store = await openLocalStore(first);
  // Run 3 has neither a trace id nor a stored parent, and run 4 no name.
  const runs = [post(1, { ms: 5 }), { ...post(2, { parent: 1 }), attachments: [ATTACHMENT] }, simple(3, { parent: 9 })];
  await store.apply(SCOPE, [...runs, patch(1, { tags: ['late'] }), patch(4, { tags: ['late'] })]);
  for (const number of [1, 2]) await store.addFeedback(SCOPE, feedback(number, { id: id(100 + number) }));
  const exact = '{"n":12345678901234567890}';
  await store.apply(ACME, [{ ...post(7, { inputs: JSON.parse(exact) }), texts: { inputs: exact } }]);
  await store.addTokenSecret({ secret: 'secret', createdMs: 1 });
  await store.revokeTokens(ACME, id(7), 7);
  await store.close();
  const expected = await contentOf(first);
  for (const name of ['used', 'revoked']) {
    await runspan('keys', 'create', '--store', first, '--tenant', 'acme', '--scope', 'read', '--name', name);
  }
  const keysOf = async (location: string) => await runspan('keys', 'list', '--store', location);
  const [, revokedId = ''] = /^(\w+) .* revoked /m.exec(await keysOf(first)) ?? [];
  await runspan('keys', 'revoke', revokedId, '--store', first);

  const lines = [
    'acme: copied 1 run, 1 trace, 0 feedback; <to> has 1 run',
    'copied 2 keys',
    'default: copied 3 runs, 2 traces, 2 feedback; <to> has 3 runs',
  ];
  const copies = [
    [first, url],
    [first, url],
    [url, other],
    [other, last],
  ] as const;
  for (const [from, to] of copies) {
    // The stores list the tenants in different orders.
    const printed = (await runspan('store', 'copy', '--keys', from, to)).trim();
    expect(printed.split('\n').sort()).toEqual(lines);
  }
  expect(await contentOf(last)).toEqual(expected);
  expect(await keysOf(last)).toEqual(await keysOf(first));
});
