import { expect, test } from 'vitest';
import { readAddress, writeAddress } from '#src/viewer/data/address.ts';

test('an address survives a round trip through the URL, and defaults are omitted', () => {
  const address = {
    view: 'runs',
    project: 'a b',
    filter: 'status:error "x & y" latency>2s',
    sort: 'cost',
    order: 'ascending',
    groupBy: 'model',
    trace: 't',
    run: 'r',
    base: 'b',
  } as const;
  expect(readAddress(writeAddress(address).slice(1))).toEqual(address);
  const defaults = { view: 'traces', filter: '', sort: 'start_time', order: 'descending', groupBy: 'name' };
  expect(readAddress('')).toEqual(defaults);
  expect(writeAddress(readAddress(''))).toBe('/');
});

test('unknown values get their default', () => {
  expect(readAddress('?view=nowhere&sort=luck&order=up&by=mood&x=y')).toEqual(readAddress(''));
});
