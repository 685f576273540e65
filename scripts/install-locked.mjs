import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * Installs the packages that the lockfile of a folder names, where that has not been done since it changed. No script of
 * theirs is run. Some are for a later Node, and run on that one.
 *
 * @param {URL} folder with a slash at its end
 */
export async function installLocked(folder) {
  const wanted = readFileSync(new URL('package-lock.json', folder), 'utf8');
  const installed = new URL('node_modules/.installed-lock.json', folder);
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return;
  const args = ['ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  await promisify(execFile)('npm', args, { cwd: fileURLToPath(folder), shell: process.platform === 'win32' });
  writeFileSync(installed, wanted);
}
