import { expect, it } from 'vitest';
import { resumptionAt } from '../../src/clients/resumption.ts';

const at = (base: string) => ({ urlOf: (path: string) => base + path });

it.each([
  ['https://host', '/runs/1/stream', { path: '/runs/1/stream', query: {} }],
  [
    'https://host',
    'https://host/runs/1/stream?a=1&b=2&a=3',
    { path: '/runs/1/stream', query: { a: ['1', '3'], b: ['2'] } },
  ],
  ['https://host/prod', '/runs/1/stream', { path: '/runs/1/stream', query: {} }],
  ['https://host/prod', '/prod/runs/1/stream', { path: '/runs/1/stream', query: {} }],
  ['https://host/prod', '/production/1', { path: '/production/1', query: {} }],
  ['https://host', '/a/../runs/1', { path: '/runs/1', query: {} }],
])('goes on below %s where it is told %s', (base, location, expected) => {
  expect(resumptionAt(location, at(base))).toEqual(expected);
});

it.each([
  undefined,
  ['/runs/1', '/runs/2'],
  'https://other/runs/1',
  'http://host/runs/1',
  'https://host:8443/runs/1',
  '//other/runs/1',
  'https://host@other/runs/1',
  'http://[',
])('goes nowhere where it is told %j', (location) => {
  expect(resumptionAt(location, at('https://host'))).toBeUndefined();
});
