import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * Installs the packages in a folder's lockfile if it changed since the last installation. Does not run their install
 * scripts. Packages that require a later Node are installed with that Node.
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
