import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Installs the packages that the lockfile of a folder names, where that has not been done since it changed. No script of
 * theirs is run. Some are for a later Node, and run on that one.
 *
 * @param {URL} folder with a slash at its end
 */
export function installLocked(folder) {
  const wanted = readFileSync(new URL('package-lock.json', folder), 'utf8');
  const installed = new URL('node_modules/.installed-lock.json', folder);
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return;
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: fileURLToPath(folder),
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  writeFileSync(installed, wanted);
}
