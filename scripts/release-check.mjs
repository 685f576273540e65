#!/usr/bin/env node
// `npm run check -- release`: follows README.md in an empty temporary folder, which is deleted afterwards. Clones the commit into
// `runspan/`, and runs the page's commands for a checkout there. In the empty project `app/`, installs the packed package, writes
// the page's programs, runs the page's other commands, and compares their output with the page. Exits with 1 after the first
// step that fails. Uses no network except npm's registry.
//
//   npm run check -- release --skip-clone   packs this checkout instead of a clone, and runs no commands for a checkout
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { runnerImport } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
const { snippetsOf, commandsOf, masked } = await importFromTests('package/snippets.ts');
const { pack } = await importFromTests('package/packed.ts');
const { manifest } = await importFromTests('package/repository.ts');
const { bareEnvironment } = await importFromTests('support/program.ts');

const STEP_MAX_MS = 20 * 60_000;
const SKIP_CLONE = '--skip-clone';
const unknown = process.argv.slice(2).filter((arg) => arg !== SKIP_CLONE);
const skipsClone = process.argv.includes(SKIP_CLONE);

const environment = bareEnvironment();
const folder = mkdtempSync(join(tmpdir(), 'runspan-release-'));
const checkout = join(folder, 'runspan');
const app = join(folder, 'app');
const done = new Set();

if (unknown.length > 0) {
  console.error(`Unknown option: ${unknown.join(' ')}`);
  process.exitCode = 2;
} else {
  try {
    followReadme();
    console.log('\nEvery step of README.md works.');
  } catch (error) {
    console.error(`\ncheck release: ${error.message}`);
    process.exitCode = 1;
  }
}
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

function followReadme() {
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{ "private": true }\n');
  if (skipsClone) mkdirSync(checkout);
  else clone();
  const page = join(skipsClone ? root : checkout, 'README.md');
  for (const snippet of snippetsOf('README.md', readFileSync(page, 'utf8'))) {
    if (/^[jt]s$/.test(snippet.language)) writeProgram(snippet);
    if (snippet.language === 'sh') runCommands(snippet);
  }
}

/** Clones the commit, so that uncommitted files are not used. */
function clone() {
  const changes = output('git', ['status', '--porcelain'], root);
  if (changes !== '') console.log(`Not in the clone, because they are not committed:\n${changes}`);
  step('git clone', () => output('git', ['clone', '--quiet', '--no-hardlinks', root, checkout], folder));
}

function writeProgram({ place, file, code, isOfPeers, notRun }) {
  if (file === undefined || isOfPeers || notRun !== undefined) {
    console.log(`${place}: skipped, because the program needs an API key`);
    return;
  }
  writeFileSync(join(app, file), code);
  console.log(`${place}: wrote ${file}`);
}

function runCommands({ place, code, prints }) {
  let printed = '';
  for (const command of commandsOf(code)) {
    const missing = /\bnode (\S+)$/.exec(command)?.[1];
    if (missing !== undefined && !existsSync(join(app, missing))) {
      console.log(`${place}: ${command}: skipped, because ${missing} is the reader's program`);
    } else if (/^npm (ci|test|pack|run)\b/.test(command)) runInCheckout(place, command);
    else step(`${place}: ${command}`, () => (printed += runInApp(command)));
  }
  if (prints === undefined) return;
  const [expected, actual] = [masked(prints), masked(printed)];
  if (!isDeepStrictEqual(actual, expected)) throw new Error(`${place}: the page shows other output than:\n${printed}`);
  console.log(`${place}: printed what the page shows`);
}

/** Runs a command for a checkout in the clone. A repeated command is run once, because it would do the same again. */
function runInCheckout(place, command) {
  if (done.has(command)) return;
  done.add(command);
  if (skipsClone) console.log(`${place}: ${command}: skipped, because there is no clone`);
  else {
    const [program, ...args] = command.split(/\s+/);
    step(`${place}: ${command}`, () => output(program, args, checkout));
  }
}

/** Runs a command in the project. The packed package takes the place of the published one. */
function runInApp(command) {
  const tarball = `runspan-${manifest.version}.tgz`;
  if (/^npm install\b/.test(command) && !existsSync(join(checkout, tarball))) pack(checkout);
  const given = command
    .replace(/^(npm install) runspan$/, `$1 ../runspan/${tarball}`)
    // The default port may be in use.
    .replace(/^(npx runspan dev)\b/, '$1 --port 0');
  const [program, ...args] = given.split(/\s+/);
  return output(program, args, app);
}

function step(title, run) {
  const startMs = Date.now();
  console.log(title);
  try {
    run();
  } catch (error) {
    throw new Error(`${title} failed\n${error.message}`);
  }
  console.log(`  ok, ${((Date.now() - startMs) / 1000).toFixed(1)} s`);
}

/** Returns the standard output of a program. Throws an error with all its output if it fails. */
function output(program, args, cwd) {
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env: environment,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 ** 2,
    shell: process.platform === 'win32',
    timeout: STEP_MAX_MS,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status ?? signal}:\n${stdout}${stderr}`);
  return stdout;
}

/** Imports a TypeScript module of the tests. Node 20 cannot load TypeScript. */
async function importFromTests(path) {
  const { module } = await runnerImport(join(root, 'test', path), { configFile: false, logLevel: 'error', root });
  return module;
}
