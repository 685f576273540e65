import { expect, test } from 'vitest';
import { readAddress, writeAddress } from '../../src/viewer/data/address.ts';

test('an address that says nothing is the list of traces, the latest first', () => {
  expect(readAddress('')).toMatchObject({
    view: 'traces',
    filter: '',
    sort: 'start_time',
    order: 'descending',
    groupBy: 'name',
  });
  expect(writeAddress(readAddress(''))).toBe('/');
});

test('what is written is read back', () => {
  const address = {
    ...readAddress(''),
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
});

test('what cannot be read is as if it were not there', () => {
  expect(readAddress('?view=nowhere&sort=luck&order=up&by=mood&x=y')).toEqual(readAddress(''));
});
