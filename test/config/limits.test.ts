import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { DELAY_MAX_MS } from '#src/platform/timers.ts';
import { root } from '../support/folders.ts';

const UNITS: Readonly<Record<string, number>> = { '': 1, MiB: 1_048_576, s: 1_000, min: 60_000, h: 3_600_000 };

/** Parses the table of limits: `| \`batchRuns\`, \`batchBytes\` | 100, 20 MiB | … |`. */
function documentedLimits(): Record<string, number | undefined> {
  const page = readFileSync(join(root, 'docs/configuration.md'), 'utf8');
  const [, table = ''] = page.split(/^## Limits$/m);
  const rows = [...table.matchAll(/^\| (`.*?`) +\| (.+?) +\|/gm)];
  return Object.fromEntries(
    rows.flatMap(([, names = '', values = '']) => {
      const amounts = values.split(', ');
      return [...names.matchAll(/`(\w+)`/g)].map(([, name = ''], index) => [name, amountOf(amounts[index] ?? '')]);
    }),
  );
}

/** Parses `100,000`, `20 MiB` and `0.5 s`. Milliseconds have no unit. */
function amountOf(text: string): number | undefined {
  const [, number = '', unit = ''] = /^([\d.,]*\d)(?: ([a-zA-Z]+))?$/.exec(text) ?? [];
  const factor = UNITS[unit];
  return number === '' || factor === undefined ? undefined : Number(number.replaceAll(',', '')) * factor;
}

test('all default limits are documented', () => {
  expect(documentedLimits()).toEqual(defaultLimits);
});

test('the longest delay is the largest that setTimeout supports', () => {
  expect(DELAY_MAX_MS).toBe(2_147_483_647);
});
