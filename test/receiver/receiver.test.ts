import { describe, expect, test } from 'vitest';
import { createReceiver, MemoryStore, type ReceiverOptions } from '#src/receiver.ts';
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

  const hosts = '0.0.0.0 :: [::] 192.168.1.2 127.1 127.0.0.1/24 2130706433 * localhost.evil.example';

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
  const spellings = [ROOT, ROOT.replaceAll('-', ''), ROOT.toUpperCase()];
  for (const traceId of spellings) {
    expect((await receiver.trace(traceId)).map(({ id }) => id)).toEqual([ROOT, CHILD]);
    expect(await receiver.runs({ traceId })).toHaveLength(2);
  }
  const [run] = await receiver.runs();
  if (run !== undefined) Object.assign(run.inputs, { a: 'changed' });
  expect((await receiver.runs())[0]?.inputs).toEqual({ a: { b: 1 } });
  expect(await receiver.trace(CHILD)).toEqual([]);
});
