import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/folders.ts';
import { bareEnvironment } from '../support/program.ts';

export interface Tarball {
  readonly path: string;
  /** Paths within the package, sorted. */
  readonly files: readonly string[];
}

export function pack(folder: string): Tarball {
  const answer = npm(['pack', '--json', '--pack-destination', folder], root);
  const [packed] = Object.values<{ filename: string; files: { path: string }[] }>(JSON.parse(answer.stdout));
  if (packed === undefined) throw new Error(`npm pack gave no package: ${answer.stdout}`);
  return { path: join(folder, packed.filename), files: packed.files.map((file) => file.path).sort() };
}

export function installed(tarball: Tarball, folder: string): string {
  writeFileSync(join(folder, 'package.json'), '{ "name": "application", "private": true, "version": "1.0.0" }\n');
  npm(['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', tarball.path], folder);
  return folder;
}

function npm(args: readonly string[], cwd: string): SpawnSyncReturns<string> {
  // `npm test` sets the path of npm. On Windows, `npm` is not an executable file.
  const file = process.env.npm_execpath;
  const [command, first] = file?.endsWith('.js') ? [process.execPath, [file]] : ['npm', []];
  const answer = spawnSync(command, [...first, ...args], { cwd, encoding: 'utf8', env: bareEnvironment() });
  if (answer.status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${answer.stderr}`);
  return answer;
}
