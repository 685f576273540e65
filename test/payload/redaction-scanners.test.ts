import { expect, onTestFinished, test } from 'vitest';
import { traceable } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { FALSE_POSITIVES, SCANNED } from './scanner-cases.ts';

function recorded(value: unknown): unknown {
  const recorder = recordRuns();
  onTestFinished(() => recorder.stop());
  traceable((_: unknown) => undefined, { name: 'work' })({ value });
  return recorder.runs[0]?.inputs?.value;
}

test('both tables have 50 rows', () => {
  expect([SCANNED.length, FALSE_POSITIVES.length]).toEqual([50, 50]);
});

test('of the secrets that scanners know, only these are recorded', () => {
  const missed = SCANNED.filter(([, value, secret]) =>
    JSON.stringify(recorded(value)).includes(JSON.stringify(secret).slice(1, -1)),
  );
  expect(missed.map(([source]) => source)).toEqual([
    'adafruit-api-key',
    'artifactory-api-key',
    'datadog-access-token',
    'fastly-api-token',
    'kraken-access-token',
    'detect-secrets, keyword',
  ]);
});

test('of the false positives that scanners know, only these are masked', () => {
  const masked = FALSE_POSITIVES.filter(([, value]) => JSON.stringify(recorded(value)) !== JSON.stringify(value));
  expect(masked.map(([source]) => source)).toEqual([
    'generic-api-key, a secret mounted by its name',
    'generic-api-key, publicToken',
  ]);
});
