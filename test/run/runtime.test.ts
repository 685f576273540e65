import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { version } from '../../src/base/version.ts';
import { runtimeJson } from '../../src/run/runtime.ts';

test('the runtime says what the application runs on, and nothing of its environment', () => {
  expect(JSON.parse(runtimeJson)).toEqual({
    sdk: 'runspan',
    sdk_version: version,
    runtime: 'node',
    runtime_version: process.version,
    platform: `${process.platform}-${process.arch}`,
  });
});

test('the version is that of the package', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect(version).toBe(manifest.version);
});
