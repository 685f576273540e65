import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSpool, type SpoolOptions } from '../../src/export/spool.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { temporaryFolder } from '../support/folders.ts';

function setUp(options: Partial<SpoolOptions> = {}) {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const open = (more: Partial<SpoolOptions> = {}) =>
    openSpool({
      spoolDir: folder.path,
      endpoint: new URL('http://127.0.0.1:4777'),
      workspaceId: undefined,
      apiKey: undefined,
      bytesMax: 1_000_000,
      ageMaxMs: 86_400_000,
      ...options,
      ...more,
    });
  return { dir: folder.path, open };
}
describe('smoke', () => {
  it('goes round', () => {
    const { open } = setUp();
    const one = open();
    const run = ended(makeRun({ inputs: '{"a":1}', outputs: '{"b":2}' }));
    expect(one.append({ op: 'post', isEnded: true, run })).toBeDefined();
    expect(one.spill([{ op: 'patch', isEnded: true, run }])).toBeDefined();
    expect(one.hasNext).toBe(true);
    one.close();
    const two = open();
    expect(two.takeOver()).toBe(2);
    const a = two.next();
    expect(a?.records).toEqual([{ op: 'post', isEnded: true, run }]);
    two.done(a!.segment);
    const b = two.next();
    two.done(b!.segment);
    expect(two.next()).toBeUndefined();
    expect(two.bytes).toBe(0);
    two.close();
  });
});
