import { expect, it } from 'vitest';
import { nearestName } from '../../src/clients/nearest-name.ts';

it.each([
  ['repoRef', 'repo_ref'],
  ['REPO_URL', 'repo_url'],
  ['sorce', 'source'],
  ['cpu_limits', 'cpu_limit'],
])('takes %s for %s', (unknown, nearest) => {
  expect(nearestName(unknown, ['repo_ref', 'repo_url', 'source', 'cpu', 'cpu_limit'])).toBe(nearest);
});

it('finds none where nothing is alike', () => {
  expect(nearestName('colour', ['repo_ref', 'source', 'cpu'])).toBeUndefined();
  expect(nearestName('', [])).toBeUndefined();
  expect(nearestName('x'.repeat(101), ['x'.repeat(100)])).toBeUndefined();
});
