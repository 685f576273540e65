import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isObject } from '../../base/options.ts';
import { readJsonObject, UsageError } from '../command-line.ts';

/** The data of package.json and its folder. */
export interface Project {
  readonly folder: string;
  /** Name of the package without its scope. */
  readonly name: string;
  readonly isTypeScript: boolean;
  readonly isEsModule: boolean;
  readonly packageManager: string;
  readonly scripts: Readonly<Record<string, string>>;
  /** Version ranges of the direct dependencies of all kinds, by package name. */
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Reads package.json of the folder. Throws a UsageError if it is missing or invalid. */
export async function readProject(folder: string): Promise<Project> {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) {
    throw new UsageError(
      `there is no ${path}: change to the folder of your program, or create the file with "npm init"`,
    );
  }
  const manifest = await readJsonObject(`@${path}`, path);
  const textsOf = (name: string): Record<string, string> => {
    const group = manifest[name] ?? {};
    if (!isObject(group)) throw new UsageError(`expected "${name}" in ${path} to be an object`);
    return Object.fromEntries(Object.entries(group).map(([key, value]) => [key, String(value)]));
  };
  const dependencies = { ...textsOf('devDependencies'), ...textsOf('dependencies') };
  return {
    folder,
    name: (typeof manifest.name === 'string' && manifest.name.split('/').at(-1)) || 'default',
    isTypeScript: 'typescript' in dependencies || existsSync(join(folder, 'tsconfig.json')),
    // The bundlers of Next.js and wrangler accept ES modules without the field.
    isEsModule: manifest.type === 'module' || 'next' in dependencies || 'wrangler' in dependencies,
    packageManager: /^(npm|pnpm|yarn|bun)@/.exec(String(manifest.packageManager))?.[1] ?? packageManagerOf(folder),
    scripts: textsOf('scripts'),
    dependencies,
  };
}

const LOCK_FILES: readonly (readonly [file: string, packageManager: string])[] = [
  ['package-lock.json', 'npm'],
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
];

/** Returns the package manager of the nearest lock file, which may be in a folder above, as in a workspace. */
function packageManagerOf(folder: string): string {
  const [, locked] = LOCK_FILES.find(([file]) => existsSync(join(folder, file))) ?? [];
  return locked ?? (dirname(folder) === folder ? 'npm' : packageManagerOf(dirname(folder)));
}
