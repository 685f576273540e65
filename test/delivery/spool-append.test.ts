import { expect, test } from 'vitest';
import { type SpoolFs, systemFs } from '#src/delivery/spool/fs.ts';
import { makeRecord, spoolFolder } from '../support/spool.ts';

const FULL_BYTES = 4_300_000;

test('the end of a run goes to the open file if the file with its start cannot be opened', () => {
  let canOpen = true;
  const openSync: SpoolFs['openSync'] = (...given) => {
    if (!canOpen) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    return systemFs.openSync(...given);
  };
  const spool = spoolFolder().open({ fs: { ...systemFs, openSync } });
  const first = spool.append(makeRecord(1));
  spool.append(makeRecord(2, FULL_BYTES));
  const open = spool.append(makeRecord(3));
  expect(spool.append(makeRecord(1), first)).toBe(first);
  canOpen = false;
  expect(spool.append(makeRecord(1), first)).toBe(open);
  expect(spool.append(makeRecord(4))).toBe(open);
});
