#!/usr/bin/env node
// Makes a folder of the chat application that needs nothing of this checkout: with it goes runspan as it is here, packed. dist/ has to be
// there.
//
//   node scripts/copy-chat.mjs ../my-chat
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const chat = join(root, 'examples/chat');
const [name, ...more] = process.argv.slice(2);

if (!name || more.length > 0) fail(2, 'usage: npm run chat:copy -- FOLDER');
const folder = resolve(name);
if (!isFree(folder)) fail(1, `chat:copy: ${folder} is there, and no empty folder; name another one`);

const ofThisMachine = ['node_modules', 'build'].map((inner) => join(chat, inner));
cpSync(chat, folder, { recursive: true, filter: (path) => !ofThisMachine.includes(path) });
const tarball = packInto(folder);
change('package.json', (text) => text.replace('"file:../.."', `"file:${tarball}"`));
change('package-lock.json', withoutCheckout);
// The pages of the documentation come with the package.
change('README.md', (text) => text.replaceAll('](../../', '](node_modules/runspan/'));
console.log(`
The chat is in ${folder}, and ${tarball} beside it is the runspan that it uses. Go on with

  cd ${JSON.stringify(folder)}
  npm install
  npm start
`);

function isFree(path) {
  return !existsSync(path) || (statSync(path).isDirectory() && readdirSync(path).length === 0);
}

/** Packs dist/ as it is; gives the name of the file. */
function packInto(destination) {
  const options = ['--ignore-scripts', '--json', '--loglevel=error', '--pack-destination'];
  // Under `npm run` npm tells where its own file is; on Windows `npm` alone is no program.
  const npm = process.env.npm_execpath;
  const [program, ...first] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const told = execFileSync(program, [...first, 'pack', ...options, destination], { cwd: root, encoding: 'utf8' });
  const [{ filename }] = Object.values(JSON.parse(told));
  return filename;
}

/** All that is locked stays so; of runspan, which is the checkout here, `npm install` finds out the rest. */
function withoutCheckout(text) {
  const lock = JSON.parse(text);
  lock.packages[''].dependencies.runspan = `file:${tarball}`;
  for (const place of ['../..', 'node_modules/runspan']) delete lock.packages[place];
  return `${JSON.stringify(lock, null, 2)}\n`;
}

function change(file, by) {
  const path = join(folder, file);
  writeFileSync(path, by(readFileSync(path, 'utf8')));
}

function fail(code, line) {
  console.error(line);
  process.exit(code);
}
