import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SCOPE, parsedQuery } from '#src/receiver.ts';
import { id, simple } from '../receiver/conformance/support.ts';
import { expectWhole, sendRequest } from '../receiver/killed-store.ts';
import { openLocalStore, storePath } from '../receiver/local-store.ts';
import { runRunspan, startNode } from '../support/program.ts';

describe('runspan backup', () => {
  it('copies the store of a running receiver, which keeps all runs that it acknowledges afterwards', async () => {
    const store = storePath();
    const [first, second] = [`${store}-1`, `${store}-2`];
    const { child, printed, ended } = startNode(['test/fixtures/store-program.mjs', store]);
    const url = (await printed(/http:\S+/))[0];
    await sendRequest(url, 0);
    const { code, stdout, stderr } = await runRunspan(['backup', first, '--store', store]);
    expect([code, stderr]).toEqual([0, `runspan: the store ${store} with 1 project\n`]);
    expect(stdout).toMatch(new RegExp(`^${first}: a copy of ${store}, [\\d.]+ KiB\n$`));
    expect(statSync(first).mode & 0o777).toBe(0o600);
    await sendRequest(url, 1);
    expect(await runRunspan(['backup', second], { RUNSPAN_STORE: store })).toMatchObject({ code: 0 });
    await sendRequest(url, 2);
    child.kill('SIGKILL');
    await ended;
    await expectWhole(first, [0]);
    await expectWhole(second, [0, 1]);
    await expectWhole(store, [0, 1, 2]);
  });

  it('copies a store that is not in use, and the copy can be opened', async () => {
    const path = storePath();
    const store = await openLocalStore(path);
    await store.apply(DEFAULT_SCOPE, [simple(1, { name: 'answer', inputs: { a: 1 } })]);
    await store.close();
    const copy = `${path}-copy`;
    expect(await runRunspan(['backup', copy, '--store', path])).toMatchObject({ code: 0 });
    const opened = await openLocalStore(copy);
    expect(await opened.payload(DEFAULT_SCOPE, id(1), 'inputs')).toBe('{"a":1}');
    expect((await opened.list(DEFAULT_SCOPE, parsedQuery({ filter: 'answer' }))).items).toHaveLength(1);
  });

  it('exits with 1, reports the cause and leaves no file behind if the copy cannot be made', async () => {
    const path = storePath();
    await (await openLocalStore(path)).close();
    const taken = `${path}-taken`;
    writeFileSync(taken, 'mine');
    const files = () => readdirSync(dirname(path)).filter((name) => !/-(wal|shm)$/.test(name));
    const before = files();
    for (const [file, store, message] of [
      [taken, path, `${taken} already exists: choose another file`],
      [join(dirname(path), 'no', 'copy.db'), path, `The folder ${join(dirname(path), 'no')} does not exist`],
      [`${path}-copy`, `${path}-none`, `There is no store at ${path}-none`],
      [`${path}-copy`, taken, `${taken} is not a runspan store`],
    ] as const) {
      const { code, stdout, stderr } = await runRunspan(['backup', file, '--store', store]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(`runspan: `);
      expect(stderr).toContain(message);
    }
    expect(readFileSync(taken, 'utf8')).toBe('mine');
    expect(files()).toEqual(before);
  });
});
