#!/usr/bin/env node
// Runs the suite, and then holds that every row of the table of faults has a test that passed. Arguments go to vitest; with
// others than those of reports not everything may run, and the table is left unchecked.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { faults } from '../test/faults/faults.mjs';
import { complaintsOf } from '../test/faults/proofs.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const given = process.argv.slice(2);
const isWhole = given.every((argument) => /^--(reporter|outputFile)=/.test(argument));
const aside = mkdtempSync(join(tmpdir(), 'runspan-test-'));
try {
  const report = reportFile();
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporting = report.isAsked ? [] : ['--reporter=default', '--reporter=json', `--outputFile.json=${report.path}`];
  const { status } = spawnSync(process.execPath, [vitest, 'run', ...given, ...reporting], {
    cwd: root,
    stdio: 'inherit',
  });
  const complaints = isWhole && existsSync(report.path) ? complaintsAbout(report.path) : [];
  for (const complaint of complaints) console.error(complaint);
  if (!isWhole) console.log('The table of faults was not checked: that takes the whole suite.');
  process.exitCode = status === 0 && complaints.length === 0 ? 0 : 1;
} finally {
  rmSync(aside, { recursive: true, force: true });
}

/** Where the report goes: to the file that was asked for, if it is to be JSON, else to one that is taken away again. */
function reportFile() {
  const asked = given.findLast((argument) => argument.startsWith('--outputFile='))?.slice('--outputFile='.length);
  const isAsked = asked !== undefined && given.includes('--reporter=json');
  return { isAsked, path: isAsked ? asked : join(aside, 'report.json') };
}

function complaintsAbout(path) {
  const unproven = JSON.parse(readFileSync(join(root, 'test', 'faults', 'missing.json'), 'utf8'));
  return complaintsOf(JSON.parse(readFileSync(path, 'utf8')), faults, unproven);
}
