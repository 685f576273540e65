import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ASIDE = new URL('../node_modules/.cache/installing/', import.meta.url);

/**
 * Installs the packages of a folder if its lockfile changed since the last installation. A folder without a lockfile is
 * a workspace of the folder above. Does not run install scripts. Packages that require a later Node are installed with
 * that Node.
 *
 * @param {URL} folder with a slash at its end
 */
export async function installLocked(folder) {
  const isWorkspace = !existsSync(new URL('package-lock.json', folder));
  const lock = isWorkspace ? lockOfWorkspace(folder) : readFileSync(new URL('package-lock.json', folder), 'utf8');
  const installed = new URL('node_modules/.installed-lock.json', folder);
  if (existsSync(installed) && readFileSync(installed, 'utf8') === lock) return;
  if (isWorkspace) await installAside(folder, lock);
  else await npmCi(folder);
  writeFileSync(installed, lock);
}

/**
 * Makes the package of this checkout, or one of its development dependencies, available to the programs in a folder.
 *
 * @param {URL} folder
 * @param {string} name
 * @param {string} target relative to `node_modules` in the folder
 */
export function link(folder, name, target) {
  mkdirSync(new URL('node_modules/', folder), { recursive: true });
  try {
    symlinkSync(target, new URL(`node_modules/${name}`, folder), 'junction');
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

/**
 * Installs one workspace in a folder of its own and moves the packages. `npm ci` would install all workspaces, in one
 * process.
 */
async function installAside(folder, lock) {
  const manifest = jsonAt(new URL('package.json', folder));
  const { overrides } = jsonAt(new URL('../package.json', folder));
  const aside = new URL(`${manifest.name}/`, ASIDE);
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside, { recursive: true });
  const own = { ...manifest, overrides: overrides?.[manifest.name] };
  writeFileSync(new URL('package.json', aside), JSON.stringify(own));
  writeFileSync(new URL('package-lock.json', aside), lock);
  await npmCi(aside, '--legacy-peer-deps');
  rmSync(new URL('node_modules', folder), { recursive: true, force: true });
  renameSync(new URL('node_modules', aside), new URL('node_modules', folder));
}

/** Returns the part of the lockfile above a folder that contains the folder's packages, as a lockfile. */
function lockOfWorkspace(folder) {
  const name = folder.pathname.split('/').at(-2);
  const { lockfileVersion, packages } = jsonAt(new URL('../package-lock.json', folder));
  const own = Object.entries(packages)
    .filter(([path]) => path.startsWith(`${name}/`))
    .map(([path, entry]) => [path.slice(name.length + 1), entry]);
  return JSON.stringify({ lockfileVersion, packages: { '': packages[name], ...Object.fromEntries(own) } });
}

async function npmCi(folder, ...options) {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...options];
  const where = { cwd: fileURLToPath(folder), shell: process.platform === 'win32' };
  const npm = promisify(execFile);
  // A cached list of a package's versions may be older than the lockfile.
  await npm('npm', [...args, '--prefer-offline'], where).catch(() => npm('npm', args, where));
}

function jsonAt(url) {
  return JSON.parse(readFileSync(url, 'utf8'));
}
