#!/usr/bin/env node
// Sums the JSON reports of vitest in a folder to one line, `N passed, N failed`; fails when a test failed or there is
// no report at all.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2] ?? '.';
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

let passed = 0;
let failed = 0;
for (const name of files) {
  const report = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  passed += report.numPassedTests;
  failed += report.numFailedTests + filesBroken(report);
}
if (files.length === 0) console.log('no suite ran');
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && files.length > 0 ? 0 : 1;

/**
 * Test files that could not be loaded: vitest counts them as failed without a failed test in them.
 * @param {{ testResults: { status: string, assertionResults: { status: string }[] }[] }} report
 */
function filesBroken(report) {
  return report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
  ).length;
}
