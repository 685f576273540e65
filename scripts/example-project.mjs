import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeBinary } from './node-binary.mjs';
import { root } from './run.mjs';

/**
 * Copies the programs of an example into a project, and installs the packages that they import, with the versions of this
 * checkout.
 *
 * @param {string} example for example `examples/hello`
 * @param {string} folder
 */
export function installExample(example, folder) {
  const files = readdirSync(join(root, example)).filter((name) => name.endsWith('.js'));
  for (const name of files) cpSync(join(root, example, name), join(folder, name));
  const names = files.flatMap((name) => packagesIn(readFileSync(join(root, example, name), 'utf8')));
  const packages = [...new Set(names)].map((name) => {
    const { version } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
    return `${name}@${version}`;
  });
  const args = ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', ...packages];
  const { status, stderr } = spawnSync('npm', args, {
    cwd: folder,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${stderr}`);
}

/** Returns this Node, or a later one if this one is older than 22.16 and stores no traces in SQLite. */
export function recordingNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 16) ? process.execPath : nodeBinary('24');
}

function packagesIn(code) {
  const specifiers = [...code.matchAll(/ from '([^'.][^':]*)'/g)].map(([, name]) => name);
  return specifiers.map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)[0]);
}
