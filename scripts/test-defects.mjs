#!/usr/bin/env node
// `npm run test:defects [-- word …]`: puts known mistakes into the source, one at a time, and demands that a test fails for
// each. The mistakes stand in test/defects/*.mjs, as a text of a file and what takes its place; words choose those whose
// title or file has them. Works on a copy, so that the checkout stays as it is.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DefectRunner } from './defect-runner.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const aside = mkdtempSync(join(tmpdir(), 'runspan-defects-'));
/** What the tests look at. The build is that of the checkout, unless a defect says `isBuilt`: its test runs what is built. */
const COPIED = [
  'src',
  'test',
  'scripts',
  'docs',
  'examples',
  'package.json',
  'tsconfig.json',
  'tsconfig.check.json',
  'vitest.config.ts',
  'vitest.peers.config.ts',
];
/** The application has packages of its own. */
const INSTALLED = join('examples', 'chat', 'node_modules');

const words = process.argv.slice(2);
const defects = (await allDefects()).filter(({ group, title, file }) =>
  words.every((word) => `${group} ${title} ${file}`.includes(word)),
);
if (defects.length === 0)
  throw new Error(`No planted defect has all of these in its group, title or file: ${words.join(' ')}`);
const workers = Math.min(defects.length, availableParallelism());
const outcomesWithout = new Map();
const failures = [];
let next = 0;
try {
  await Promise.all(Array.from({ length: workers }, (_, number) => work(join(aside, String(number)))));
} finally {
  rmSync(aside, { recursive: true, force: true });
}
for (const failure of failures) console.log(`NOT CAUGHT  ${failure}`);
console.log(`${defects.length - failures.length} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 && defects.length > 0 ? 0 : 1;

/** @returns {Promise<{ group: string, title: string, file: string, find: string, replace: string, tests: string[] }[]>} */
async function allDefects() {
  const folder = join(root, 'test', 'defects');
  const all = [];
  for (const name of readdirSync(folder)
    .filter((file) => file.endsWith('.mjs'))
    .sort()) {
    const { defects: listed } = await import(pathToFileURL(join(folder, name)).href);
    all.push(...listed.map((defect) => ({ group: name.slice(0, -'.mjs'.length), ...defect })));
  }
  return all;
}

/** Takes one defect after the other, in a copy of its own. */
async function work(folder) {
  makeCopy(folder);
  const runners = new Map();
  while (next < defects.length) {
    const defect = defects[next++];
    const startedMs = performance.now();
    const { config = 'vitest.config.ts' } = defect;
    if (!runners.has(config)) runners.set(config, new DefectRunner(folder, config));
    const complaint = await complaintOf(folder, runners.get(config), defect);
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    console.log(
      `${complaint === undefined ? 'caught' : 'MISSED'}  ${seconds.padStart(5)} s  ${defect.group}: ${defect.title}`,
    );
    if (complaint !== undefined) failures.push(`${defect.group}: ${defect.title}: ${complaint}`);
  }
  for (const runner of runners.values()) runner.stop();
}

function makeCopy(folder) {
  mkdirSync(folder, { recursive: true });
  const filter = (path) => !path.split(sep).includes('node_modules');
  for (const name of COPIED) cpSync(join(root, name), join(folder, name), { recursive: true, filter });
  if (existsSync(join(root, INSTALLED))) symlinkSync(join(root, INSTALLED), join(folder, INSTALLED));
  // A folder of its own, so that what tests and builds keep in node_modules/.cache stays apart.
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '.cache') symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  }
  copyBuild(folder);
}

/** The build of the checkout, and what that keeps for tests. */
function copyBuild(folder) {
  for (const name of ['dist', join('node_modules', '.cache', 'modules')]) {
    rmSync(join(folder, name), { recursive: true, force: true });
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
}

/** Why a defect does not count as caught; undefined when an assertion has failed because of it. */
async function complaintOf(folder, runner, { file, find, replace, tests, isBuilt = false }) {
  const path = join(folder, file);
  const text = readFileSync(path, 'utf8');
  const found = text.split(find).length - 1;
  if (found !== 1) return `${file} has the text to replace ${found} times`;
  const before = await outcomeWithout(runner, path, tests);
  if (before !== 'passed') return `without it the tests have ${before}`;
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  try {
    if (isBuilt && !(await builds(folder))) return 'it does not compile';
    const outcome = await runner.outcomeOf(path, tests);
    return outcome === 'failed' ? undefined : `${tests.join(', ')}: ${outcome}`;
  } finally {
    writeFileSync(path, text);
    if (isBuilt) copyBuild(folder);
  }
}

async function builds(folder) {
  const child = spawn(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'ignore' });
  const [code] = await once(child, 'close');
  return code === 0;
}

/** The same for sound source, asked once for each list of tests. */
function outcomeWithout(runner, changed, tests) {
  const key = tests.join(' ');
  if (!outcomesWithout.has(key)) outcomesWithout.set(key, runner.outcomeOf(changed, tests));
  return outcomesWithout.get(key);
}
