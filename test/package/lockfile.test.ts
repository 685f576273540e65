import { expect, it } from 'vitest';
import { runNode } from '../support/program.ts';

it('the lockfile has the binaries of each platform, which npm ci requires; npm run generate adds them', async () => {
  const answer = await runNode(['scripts/lockfile.mjs', '--check']);
  expect(answer.stderr).toBe('');
  expect(answer.code).toBe(0);
});
