import { expect, it } from 'vitest';
import { node } from './packed.ts';
import { root } from './repository.ts';

it('has an entry for the binaries of every platform, without which npm ci refuses it; npm run lockfile adds them', () => {
  const answer = node(['scripts/lockfile.mjs', '--check'], root);
  expect(answer.stderr).toBe('');
  expect(answer.status).toBe(0);
});
