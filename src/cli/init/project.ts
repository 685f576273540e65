import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { isObject } from '../../config/checker.ts';
import { readJsonObject, UsageError } from '../command-line.ts';

export interface Project {
  readonly folder: string;
  readonly name: string;
  /** The JavaScript file that Node loads for the package. Undefined if the file does not exist. */
  readonly main: string | undefined;
  readonly isTypeScript: boolean;
  readonly isEsModule: boolean;
  readonly packageManager: string;
  readonly scripts: Readonly<Record<string, string>>;
  /** Version ranges of all direct dependencies, by package name. */
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Reads package.json in a folder. Throws a `UsageError` if package.json is missing or invalid. */
export async function readProject(folder: string): Promise<Project> {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) {
    throw new UsageError(
      `there is no ${path}: change to the folder of your program, or create the file with "npm init"`,
    );
  }
  const manifest = await readJsonObject(path, path);
  const textsOf = (name: string): Record<string, string> => {
    const group = manifest[name] ?? {};
    if (!isObject(group)) throw new UsageError(`expected "${name}" in ${path} to be an object`);
    return Object.fromEntries(Object.entries(group).map(([key, value]) => [key, String(value)]));
  };
  const dependencies = { ...textsOf('devDependencies'), ...textsOf('dependencies') };
  return {
    folder,
    name: (typeof manifest.name === 'string' && manifest.name) || 'default',
    main: mainOf(folder, manifest),
    isTypeScript: 'typescript' in dependencies || existsSync(join(folder, 'tsconfig.json')),
    // The bundlers of Next.js and wrangler accept ES modules without `"type": "module"`.
    isEsModule: manifest.type === 'module' || 'next' in dependencies || 'wrangler' in dependencies,
    packageManager: /^(npm|pnpm|yarn|bun)@/.exec(String(manifest.packageManager))?.[1] ?? packageManagerOf(folder),
    scripts: textsOf('scripts'),
    dependencies,
  };
}

/** Matches a JavaScript file that a shell command can name without quotes. */
const PLAIN_FILE = /^[\w./@-]+\.[cm]?js$/;

function mainOf(folder: string, { main, exports, module }: Record<string, unknown>): string | undefined {
  return [main, exports, module, 'index.js']
    .flatMap((file) => (typeof file === 'string' && PLAIN_FILE.test(file) ? normalize(file) : []))
    .find((file) => statSync(join(folder, file), { throwIfNoEntry: false })?.isFile());
}

const LOCK_FILES: readonly (readonly [file: string, packageManager: string])[] = [
  ['package-lock.json', 'npm'],
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
];

/** Returns the package manager for the nearest lock file. In a workspace, the lock file may be in a parent folder. */
function packageManagerOf(folder: string): string {
  const [, locked] = LOCK_FILES.find(([file]) => existsSync(join(folder, file))) ?? [];
  return locked ?? (dirname(folder) === folder ? 'npm' : packageManagerOf(dirname(folder)));
}
