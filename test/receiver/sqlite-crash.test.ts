import { expect, test } from 'vitest';
import { runNode } from '../support/program.ts';
import { killedUnderLoad } from './killed-store.ts';
import { storePath } from './local-store.ts';

test('a receiver that is killed has kept all that it has acknowledged, and can go on', async () => {
  const path = storePath();
  let next = 0;
  for (const afterMs of [150, 300, 600]) next = await killedUnderLoad(path, next, afterMs);
});

const PROGRAM = `
  import { SqliteStore } from 'runspan/receiver';
  const store = await SqliteStore.open(process.argv[1]);
  store.subscribe(({ traceIds }) => console.log('changed', traceIds.length));
  const fields = { name: 'a', run_type: 'chain', start_time: '2026-11-20T07:00:00.000000Z', inputs: { a: 'zebra' } };
  const id = '00000000-0000-7000-8000-000000000001';
  await store.apply([{ kind: 'post', id, fields, attachments: [] }]);
  console.log((await store.list({ text: 'zebra' })).items.length, (await store.statistics({})).total.runs);
`;

test('a program that has a store open ends by itself, with or without closing it, and says nothing of its own', async () => {
  const path = storePath();
  for (const end of ['', 'await store.close();', 'await Promise.all([store.close(), store.close()]);']) {
    const ended = await runNode(['--input-type=module', '-e', PROGRAM + end, path]);
    expect(ended).toEqual({ code: 0, signal: null, stdout: 'changed 1\n1 1\n', stderr: '' });
  }
});

test('a program whose file is open in another is told who has it', async () => {
  const path = storePath();
  const program = `
    import { SqliteStore } from 'runspan/receiver';
    const store = await SqliteStore.open(process.argv[1]);
    await store.setAddress('http://127.0.0.1:4777');
    const reading = await SqliteStore.open(process.argv[1], { readOnly: true });
    console.log((await reading.owner()).pid === process.pid, (await store.list({})).items.length);
    const isRefused = await reading.apply([]).catch(({ message }) => message.includes('open to read alone'));
    await SqliteStore.open(process.argv[1]).catch(({ code, message }) => console.log(isRefused, code, message.includes(':4777')));
    await reading.close();
    await store.close();
  `;
  const ended = await runNode(['--input-type=module', '-e', program, path]);
  expect(ended).toMatchObject({ stdout: 'true 0\ntrue RUNSPAN_STORE_IN_USE true\n', stderr: '' });
});
