import { expect, test } from 'vitest';
import { adviceFor } from '../../src/cli/doctor-advice.ts';

test.each<[number | undefined, RegExp]>([
  [302, /behind it$/],
  [399, /behind it$/],
  [400, /a service that takes runs/],
  [401, /^copy RUNSPAN_API_KEY again/],
  [403, /^copy RUNSPAN_API_KEY again/],
  [404, /^check the path in the endpoint/],
  [408, /try again later$/],
  [402, /^the account of this key may have to pay, or need another plan; ask the service$/],
  [422, /^check that the endpoint is a service that takes runs; if it is, report this as a defect of runspan$/],
  [413, /in one request$/],
  [418, /^see what the service means/],
  [429, /takes no more for now; try again later/],
  [499, /^see what the service means/],
  [500, /in trouble; try again later$/],
  [501, /^check the path in the endpoint/],
  [200, /^see what the service means/],
  [undefined, /in trouble; try again later$/],
])('status %s has advice that fits it', (status, expected) => {
  expect(adviceFor(status, true)).toMatch(expected);
});

test.each([401, 403])('status %i without a key asks for one', (status) => {
  expect(adviceFor(status, false)).toBe('set RUNSPAN_API_KEY');
});
