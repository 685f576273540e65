#!/usr/bin/env node
// Copies the chat application into a folder that does not need this checkout. The copy contains runspan as a tarball.
// Needs dist/.
//
//   npm run chat -- copy ../my-chat
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const chat = join(root, 'examples/chat');
const [name, ...more] = process.argv.slice(2);

if (!name || more.length > 0) fail(2, 'usage: npm run chat -- copy FOLDER');
const folder = resolve(name);
if (!isFree(folder)) fail(1, `chat copy: ${folder} already exists and is not empty. Choose another folder.`);

const excluded = ['node_modules', 'build'].map((inner) => join(chat, inner));
cpSync(chat, folder, { recursive: true, filter: (path) => !excluded.includes(path) });
const tarball = packInto(folder);
change('package.json', (text) => text.replace('"file:../.."', `"file:${tarball}"`));
change('package-lock.json', withoutCheckout);
// The chat answers questions about the documentation, which the package does not contain.
for (const page of readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))) {
  cpSync(join(root, 'docs', page), join(folder, 'docs', page));
}
change('README.md', (text) => text.replaceAll('](../../docs/', '](docs/'));
console.log(`
The chat is in ${folder}. It uses runspan from ${tarball}. Continue with

  cd ${JSON.stringify(folder)}
  npm install
  npm start
`);

function isFree(path) {
  return !existsSync(path) || (statSync(path).isDirectory() && readdirSync(path).length === 0);
}

/** Packs dist/, and returns the file name. */
function packInto(destination) {
  const options = ['--ignore-scripts', '--json', '--loglevel=error', '--pack-destination'];
  // `npm run` sets the path of npm. On Windows, `npm` alone cannot be executed.
  const npm = process.env.npm_execpath;
  const [program, ...first] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const output = execFileSync(program, [...first, 'pack', ...options, destination], { cwd: root, encoding: 'utf8' });
  const [{ filename }] = Object.values(JSON.parse(output));
  return filename;
}

/** Keeps all locked packages except runspan, whose entry points to the checkout. `npm install` completes the entry. */
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
