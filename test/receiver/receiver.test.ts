import { describe, expect, test } from 'vitest';
import { createReceiver, MemoryStore, type ReceiverOptions, type RunQuery } from '#src/receiver.ts';
import { CHILD, makeChild, makeRun, part, ROOT, sendParts, start } from './wire.ts';

describe('options', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ port: '4777' }, 'Expected `port` to be a whole number from 0 to 65535, got "4777"'],
    [{ port: -1 }, 'Expected `port` to be a whole number from 0 to 65535, got the number -1'],
    [{ port: 65_536 }, 'Expected `port` to be a whole number from 0 to 65535, got the number 65536'],
    [{ port: Number.NaN }, 'Expected `port` to be a whole number'],
    [{ host: 1 }, 'got the number 1'],
    [{ strict: 'yes' }, 'Expected `strict` to be true or false, got "yes"'],
    [
      { store: Object.assign(new MemoryStore(), { tokenSecrets: 5, runs: undefined }) },
      'Expected `store` to be an object with all methods of `Store`, got a store without runs, tokenSecrets',
    ],
    [{ store: {} }, 'got a store without apply, runs, attachment'],
    [{ store: null }, 'Expected `store` to be an object with all methods of `Store`, got null'],
    [
      { prot: 4777 },
      'Expected the options to contain only host, port, store, strict, apiKey, writeKey, workspaceId, allowedHosts, allowedOrigins, resource, vocabularies, got `prot`',
    ],
  ])('%j is refused', async (options, message) => {
    await expect(createReceiver(options as ReceiverOptions)).rejects.toMatchObject({
      code: 'RUNSPAN_INVALID_OPTION',
      message: expect.stringContaining(message),
    });
  });

  const hosts = '0.0.0.0 :: [::] ::ffff:127.0.0.1 192.168.1.2 127.1 127.0.0.1/24 2130706433 * localhost.evil.example';

  test.each(['', ...hosts.split(' ')])('the host %j is refused without a key [security 8]', async (host) => {
    const message = `Expected \`host\` to be a loopback address (127.0.0.1, ::1 or localhost) without an \`apiKey\`, got "${host}"`;
    await expect(createReceiver({ host })).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION', message });
  });

  test.each([null, 5, 'x', []])('%j is not an object', async (options) => {
    await expect(createReceiver(options as ReceiverOptions)).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
  });

  test('an undefined option has its default', async () => {
    const nothing = { host: undefined, port: undefined } as unknown as ReceiverOptions;
    expect((await start(nothing)).url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });
});

test('runs and trace accept ids in every spelling, and return copies', async () => {
  const receiver = await start();
  await sendParts(
    receiver,
    part(`post.${CHILD}`, makeChild()),
    part(`post.${ROOT}`, makeRun({ inputs: { a: { b: 1 } } })),
  );
  const spellings = [ROOT, ROOT.replaceAll('-', ''), ROOT.replaceAll('-', '').toUpperCase()];
  for (const traceId of spellings) {
    expect((await receiver.trace(traceId)).map(({ id }) => id)).toEqual([ROOT, CHILD]);
    expect(await receiver.runs({ traceId })).toHaveLength(2);
  }
  const [run] = await receiver.runs();
  if (run !== undefined) Object.assign(run.inputs, { a: 'changed' });
  expect((await receiver.runs())[0]?.inputs).toEqual({ a: { b: 1 } });
  expect(await receiver.trace(CHILD)).toEqual([]);
  await expect(receiver.trace('abc')).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
});

const OTHER = '0193b3a0-3333-7000-8000-000000000003';

async function filled() {
  const receiver = await start();
  const other = { id: OTHER, trace_id: OTHER, dotted_order: `20261120T072239000000Z${OTHER}`, session_name: 'shop' };
  await sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun()),
    part(`post.${CHILD}`, makeChild()),
    part(`post.${OTHER}`, makeRun(other)),
  );
  return receiver;
}

describe('a query', () => {
  test.each<[RunQuery | undefined, string[]]>([
    [undefined, [OTHER, ROOT, CHILD]],
    [{ project: 'default', filter: 'name:answer' }, [ROOT]],
    [{ limit: 2 }, [OTHER, ROOT]],
    [{ limit: undefined, filter: undefined } as unknown as RunQuery, [OTHER, ROOT, CHILD]],
  ])('%j gives what matches, in order', async (query, ids) => {
    const receiver = await filled();
    expect((await receiver.runs(query)).map(({ id }) => id)).toEqual(ids);
  });

  test.each<[unknown, string]>([
    [{ limit: 0 }, 'Expected `limit` to be a whole number from 1, got the number 0'],
    [{ limit: 1.5 }, 'Expected `limit`'],
    [{ traceId: 'abc' }, 'Expected `traceId` to be a UUID, got "abc"'],
    [{ filter: 'status:x' }, 'Expected `filter` to be a valid filter, got "status:x": status: expects one of error,'],
    [{ filter: 1 }, 'Expected `filter` to be a string, got the number 1'],
    [{ name: 'a' }, 'got `name`'],
    [{ trace_id: ROOT }, 'got `trace_id`'],
    [null, 'Expected the query to be an object, got null'],
    [5, 'Expected the query to be an object, got the number 5'],
    ['answer', 'Expected the query to be an object, got a string'],
  ])('%j is refused by name', async (query, message) => {
    const receiver = await start();
    await expect(receiver.runs(query as RunQuery)).rejects.toMatchObject({
      code: 'RUNSPAN_INVALID_OPTION',
      message: expect.stringContaining(message),
    });
  });
});
