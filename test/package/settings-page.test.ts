import { expect, it } from 'vitest';
import { defaultLimits, type Limits } from '#src/config/limits.ts';
import { SETTINGS, type SettingName } from '#src/config/settings.ts';
import { read } from './repository.ts';
import { limitNotes, settingNotes } from './setting-notes.ts';

const PAGE = 'docs/configuration.md';

it('the committed tables of settings and limits are up to date; npm run generate updates them', async () => {
  const page = [
    ['| option | variable | default | |', settingRows()] as const,
    ['| limit | default | at the limit |', limitRows()] as const,
  ].reduce((text, [head, rows]) => withRows(text, head, rows), read(PAGE));
  await expect(page).toMatchFileSnapshot(`../../${PAGE}`, 'update it with: npm run generate');
});

it('the page has a row for each setting with a variable, and for each limit', () => {
  const documented = settingNotes.flatMap(([options]) => options);
  const settings = Object.entries(SETTINGS).filter(([, { kind }]) => kind !== undefined);
  expect(settings.map(([name]) => name).filter((name) => !documented.includes(name))).toEqual([]);
  expect(limitNotes.flatMap(([limits]) => limits).sort()).toEqual(Object.keys(defaultLimits).sort());
});

/** Replaces the rows of a table, which starts with `head`. */
function withRows(page: string, head: string, rows: readonly string[]): string {
  const lines = page.split('\n');
  const first = lines.indexOf(head) + 2;
  expect(first, head).toBeGreaterThan(1);
  const end = lines.findIndex((line, at) => at >= first && !line.startsWith('|'));
  return [...lines.slice(0, first), ...rows, ...lines.slice(end)].join('\n');
}

function settingRows(): string[] {
  return settingNotes.map(([options, otherwise, text]) => {
    const setting = SETTINGS[options[0] as SettingName];
    const variable = options.length === 0 ? 'RUNSPAN_INSTRUMENTATIONS' : setting?.variables[0];
    const value = otherwise ?? `\`${setting?.otherwise}\``;
    return row([codes(options), variable === undefined ? '' : `\`${variable}\``, value, text]);
  });
}

function limitRows(): string[] {
  return limitNotes.map(([limits, text]) => row([codes(limits), limits.map(valueText).join(', '), text]));
}

function row(cells: readonly string[]): string {
  return `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`;
}

function codes(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [500, 's'],
];

/** Formats the default of a limit, for example `15 min`, `20 MiB` or `10,000`. */
function valueText(limit: keyof Limits): string {
  const value = defaultLimits[limit];
  if (limit.endsWith('Bytes')) return `${value / 1_024 ** 2} MiB`;
  if (!limit.endsWith('Ms')) return value.toLocaleString('en');
  const [ms, unit] = UNITS.find(([ms]) => value >= ms) ?? [1, ''];
  return unit === '' ? `${value}` : `${value / (unit === 's' ? 1_000 : ms)} ${unit}`;
}
