import { expect, it } from 'vitest';
import { runNode } from '../support/program.ts';

it('has an entry for the binaries of every platform, without which npm ci refuses it; npm run lockfile adds them', async () => {
  const answer = await runNode(['scripts/lockfile.mjs', '--check']);
  expect(answer.stderr).toBe('');
  expect(answer.code).toBe(0);
});
