#!/usr/bin/env node
// `npm run check -- release`: follows README.md in an empty temporary folder, which is deleted afterwards. Clones the commit into
// `runspan/`, and runs the page's commands for a checkout there. In the empty project `app/`, installs the packed package, writes
// the page's programs, runs the page's other commands, and compares their output with the page. Does the same for the pages of
// docs/ that show the output of a command, and compares the texts of the screenshots. Exits with 1 after the first step that
// fails. Needs Chromium, and uses no network except npm's registry.
//
//   npm run check -- release --skip-clone   packs this checkout instead of a clone, and runs no commands for a checkout
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { installExample, recordingNode } from './example-project.mjs';
import { importFromTests } from './import-from-tests.mjs';
import { root } from './run.mjs';

const { abridged, snippetsOf, commandsOf, masked } = await importFromTests('package/snippets.ts');
const { pack } = await importFromTests('package/packed.ts');
const { guides, manifest } = await importFromTests('package/repository.ts');
const { bareEnvironment } = await importFromTests('support/program.ts');

const STEP_MAX_MS = 20 * 60_000;
const SKIP_CLONE = '--skip-clone';
const unknown = process.argv.slice(2).filter((arg) => arg !== SKIP_CLONE);
const skipsClone = process.argv.includes(SKIP_CLONE);

const environment = bareEnvironment();
const folder = mkdtempSync(join(tmpdir(), 'runspan-release-'));
const checkout = join(folder, 'runspan');
const app = join(folder, 'app');
/** For the project: a Node that records packages and stores traces, and a store of the project's own. */
const recording = {
  ...environment,
  PATH: [dirname(recordingNode()), environment.PATH].join(delimiter),
  RUNSPAN_STORE: join(app, 'runs.db'),
};
const done = new Set();

if (unknown.length > 0) {
  console.error(`Unknown option: ${unknown.join(' ')}`);
  process.exitCode = 2;
} else {
  try {
    followReadme();
    for (const page of guides) followCommands(page);
    compareChatAndScreenshots();
    console.log('\nEvery step of README.md works, and docs/ shows what the commands print and the pages contain.');
  } catch (error) {
    console.error(`\ncheck release: ${error.message}`);
    process.exitCode = 1;
  }
}
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

function followReadme() {
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }\n');
  if (skipsClone) mkdirSync(checkout);
  else clone();
  const page = join(skipsClone ? root : checkout, 'README.md');
  const snippets = snippetsOf('README.md', readFileSync(page, 'utf8'));
  for (const snippet of snippets.filter((one) => one.folder === undefined)) {
    if (/^[jt]s$/.test(snippet.language)) writeProgram(snippet);
    if (snippet.language === 'sh') runCommands(snippet);
  }
  // Examples need the package, which one of the commands above installs.
  const ofExamples = snippets.filter((one) => one.folder !== undefined);
  for (const name of new Set(ofExamples.map((one) => one.folder))) {
    step(`README.md: copies ${name}`, () => installExample(name, app));
    ofExamples.filter((one) => one.folder === name).forEach(runCommands);
  }
}

/** Runs the commands of a page whose output it shows. */
function followCommands(page) {
  const snippets = snippetsOf(page, readFileSync(join(root, page), 'utf8')).filter((one) => !one.isOfPeers);
  const printing = snippets.filter(({ language, prints }) => language === 'sh' && prints !== undefined);
  if (printing.length === 0) return;
  snippets.filter(({ language, file }) => language === 'js' && file !== undefined).forEach(writeProgram);
  printing.forEach(runCommands);
}

/** Compares what the chat prints, and the texts of all screenshots, one of which shows the chat. */
function compareChatAndScreenshots() {
  const title = 'show what the program prints';
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project=peers', `--testNamePattern=${title}`];
  const node = (...args) => output(process.execPath, args, root);
  step('builds the chat', () => node('scripts/build-chat.mjs'));
  step('docs/chat.md', () => node(...vitest, 'test/peers/chat-docs.test.ts'));
  step('docs/images/texts.txt', () => node('scripts/screenshots/screenshots.mjs', '--check'));
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

function runCommands({ place, code, prints, fails }) {
  let printed = '';
  const commands = commandsOf(code);
  for (const command of commands) {
    const status = fails && command === commands.at(-1) ? 1 : 0;
    if (/^(git clone|cd|npm (ci|test|pack|run))\b/.test(command)) runInCheckout(place, command);
    else step(`${place}: ${command}`, () => (printed += runInApp(command, status)));
  }
  if (prints === undefined) return;
  const expected = masked(prints);
  if (!isDeepStrictEqual(abridged(printed, expected), expected))
    throw new Error(`${place}: the page shows other output than:\n${printed}`);
  console.log(`${place}: printed what the page shows`);
}

/** Runs a command for a checkout in the clone, which `git clone` has made. A repeated command is run once, because it would do the same again. */
function runInCheckout(place, command) {
  if (done.has(command)) return;
  done.add(command);
  if (/^(git clone|cd) /.test(command)) return;
  if (skipsClone) console.log(`${place}: ${command}: skipped, because there is no clone`);
  else {
    const [program, ...args] = command.split(/\s+/);
    step(`${place}: ${command}`, () => output(program, args, checkout));
  }
}

/** Runs a command in the project. The packed package takes the place of the published one. */
function runInApp(command, status) {
  const tarball = `runspan-${manifest.version}.tgz`;
  if (/^npm install\b/.test(command) && !existsSync(join(checkout, tarball))) pack(checkout);
  const given = command
    .replace(/^(npm install) runspan$/, `$1 ../runspan/${tarball}`)
    // The default port may be in use.
    .replace(/^(npx runspan dev)\b/, '$1 --port 0');
  const [program, ...args] = given.split(/\s+/);
  return output(program, args, app, recording, status);
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

/** Returns the standard output of a program. Throws an error with all its output if it ends with another exit code. */
function output(program, args, cwd, env = environment, expected = 0) {
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 ** 2,
    shell: process.platform === 'win32',
    timeout: STEP_MAX_MS,
  });
  if (error !== undefined) throw error;
  if (status !== expected)
    throw new Error(`${program} ${args.join(' ')} ended with ${status ?? signal}:\n${stdout}${stderr}`);
  return stdout;
}
