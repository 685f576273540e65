#!/usr/bin/env node
// Adds up the vitest JSON reports in a folder and prints `N passed, N failed`. Fails if a test failed or there is no
// report.
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
 * Counts test files that could not be loaded. vitest counts them as failed, although they contain no failed test.
 * @param {{ testResults: { status: string, assertionResults: { status: string }[] }[] }} report
 */
function filesBroken(report) {
  return report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
  ).length;
}
