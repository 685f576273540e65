import { expect, onTestFinished, test } from 'vitest';
import { sendSpool } from '../../src/cli/spool-send.ts';
import type { Segment } from '../../src/export/spool.ts';
import { createReceiver } from '../../src/receiver.ts';
import { killOwners, makeRecord, segmentsBelow, spoolFolder } from '../support/spool.ts';
import { told } from '../support/told.ts';

async function sent(dir: string, url: string): Promise<{ code: number; text: string }> {
  let text = '';
  const code = await sendSpool(
    { kind: 'spool', action: 'send', dir, endpoint: new URL(url), isConfirmed: false, isAll: false },
    (more) => {
      text += more;
    },
  );
  return { code, text };
}

test('what dead processes have left is delivered, and nothing is left on disk', async () => {
  told();
  const receiver = await createReceiver();
  onTestFinished(() => receiver.close());
  const { dir, open } = spoolFolder();
  const dead = open({ endpoint: new URL(receiver.url), workspaceId: undefined, apiKey: undefined });
  const records = [makeRecord(1), makeRecord(2), makeRecord(3)] as const;
  dead.append(records[0]);
  dead.spill([records[1], records[2]]) satisfies Segment | undefined;
  killOwners(dir);

  expect(await sent(dir, receiver.url)).toEqual({ code: 0, text: `delivered 3 of 3 runs to ${receiver.url}\n` });
  expect((await receiver.runs()).map(({ id }) => id).sort()).toEqual(records.map(({ run }) => run.id).sort());
  expect(segmentsBelow(dir)).toEqual([]);
  expect(await sent(dir, receiver.url)).toEqual({ code: 0, text: `nothing waits for ${receiver.url}\n` });
});

test('without a service there is an error that says what to set', async () => {
  told();
  const { dir } = spoolFolder();
  const nowhere = {
    kind: 'spool',
    action: 'send',
    dir,
    endpoint: undefined,
    isConfirmed: false,
    isAll: false,
  } as const;
  await expect(sendSpool(nowhere, () => {})).rejects.toThrow('set RUNSPAN_ENDPOINT');
});
