import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const HOOKS = `export const resolve = (name, context, next) => {
  if (name === '@photostructure/sqlite') throw new Error('not installed');
  return next(name, context);
};`;

/** Returns the `NODE_OPTIONS` of a program that finds no SQLite. Writes a file to the folder. */
export function withoutSqlite(folder: string): string {
  const preload = join(folder, 'preload.cjs');
  writeFileSync(
    preload,
    `const { getBuiltinModule } = process;
    process.getBuiltinModule = (name) => (name === 'node:sqlite' ? undefined : getBuiltinModule(name));
    require('node:module').register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOKS)}`)});`,
  );
  return `--no-deprecation --require ${preload}`;
}
