import { expect, test } from 'vitest';
import { uuidv7 } from '../../page/uuid.ts';

test('ids of one millisecond, and of a clock that goes back, are still in order', () => {
  const made = [...Array.from({ length: 5_000 }, () => uuidv7(1_800_000_000_000)), uuidv7(1_700_000_000_000)];
  for (const id of made) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect([...made].sort()).toEqual(made);
  expect(new Set(made).size).toBe(made.length);
});
