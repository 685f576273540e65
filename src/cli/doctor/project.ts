import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseEnv } from 'node:util';
import { ignoreErrors } from '../../base/guard.ts';
import { version } from '../../base/version.ts';
import { environment } from '../../platform/node.ts';
import { documentationUrl, PACKAGE_FOLDER } from '../command-line.ts';
import { type Finding, okFinding, warn } from './finding.ts';

/** Returns the variables in the files `.env` and `.env.local` of a folder, by file. The last file takes precedence. */
export function variablesInFiles(folder: string): [file: string, variables: NodeJS.Dict<string>][] {
  return ['.env', '.env.local'].flatMap((file) => {
    const path = join(folder, file);
    // Reading a named pipe could wait for ever.
    const text = ignoreErrors(() => (statSync(path).isFile() ? readFileSync(path, 'utf8') : undefined));
    return text === undefined ? [] : [[file, parseEnv(text)]];
  });
}

/**
 * Sets the variables of these files that the environment does not set, as `node --env-file` does. Returns the file of each
 * variable.
 */
export function loadVariables(folder: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const [file, variables] of variablesInFiles(folder).reverse()) {
    for (const [name, value] of Object.entries(variables)) {
      if (environment()[name] !== undefined) continue;
      environment()[name] = value;
      files.set(name, file);
    }
  }
  return files;
}

/** Checks the package that a program in `folder` loads, and the imports in its source files. */
export function* projectFindings(folder: string): Generator<Finding> {
  const installed = installedVersion(folder);
  if (installed === undefined)
    yield okFinding('runspan', `not installed in this folder; this command is in ${PACKAGE_FOLDER}`);
  else if (installed === version) yield okFinding('runspan', `${installed} is installed`);
  else yield warn('runspan', `the program loads ${installed}, this command is ${version}`, 'use one version for both');
  yield* importFindings(sourceFiles(folder));
}

/** Returns the version of runspan that a file in `folder` loads. */
function installedVersion(folder: string): string | undefined {
  const path = join(folder, 'node_modules/runspan/package.json');
  const found: unknown = ignoreErrors(() => JSON.parse(readFileSync(path, 'utf8')).version);
  if (typeof found === 'string') return found;
  return dirname(folder) === folder ? undefined : installedVersion(dirname(folder));
}

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

const SOURCE = /\.[cm]?[jt]sx?$/;
const SKIPPED = /^(?:\..*|node_modules|dist|build|out|coverage)$/;
const FILES_MAX = 5_000;
const FILE_BYTES_MAX = 1024 ** 2;

function* sourceFiles(folder: string): Generator<SourceFile> {
  const pending = [folder];
  let files = 0;
  for (let next = pending.pop(); next !== undefined && files < FILES_MAX; next = pending.pop()) {
    for (const entry of ignoreErrors(() => readdirSync(next, { withFileTypes: true })) ?? []) {
      const path = join(next, entry.name);
      if (entry.isDirectory() && !SKIPPED.test(entry.name)) pending.push(path);
      if (!entry.isFile() || !SOURCE.test(entry.name)) continue;
      files += 1;
      const text = ignoreErrors(() => (statSync(path).size > FILE_BYTES_MAX ? '' : readFileSync(path, 'utf8'))) ?? '';
      yield { path: relative(folder, path), text };
    }
  }
}

/** The entry points of LangSmith's package that `runspan/langsmith` replaces. */
const REPLACED =
  /^langsmith(?:\/(?:client|run_trees|schemas|traceable|singletons\/traceable|wrappers|wrappers\/openai|experimental\/vercel))?$/;

/** Matches `{ names } from 'module'`, and `{ names } = require('module')` or `= await import('module')`, without types. */
const IMPORT =
  /(?<!\btype\s*)\{([^{}]*)\}\s*(?:from|=\s*(?:await\s+)?(?:require|import)\s*\()\s*['"](langsmith(?:\/[\w/]+)?)['"]/g;

/** The values that `runspan/langsmith` has, too. */
export const REPLACED_NAMES: readonly string[] = [
  ...['Client', 'LS_MESSAGE_VIEW_EXCLUDE', 'ROOT', 'RunTree', 'RunnableTraceable', 'createLangSmithProviderOptions'],
  ...['getCurrentRunTree', 'getDefaultProjectName', 'getLangchainCallbacks', 'isRunTree', 'isRunnableConfigLike'],
  ...['isTraceableFunction', 'isTracingEnabled', 'traceable', 'uuid7', 'uuid7FromTime', 'withRunTree', 'wrapAISDK'],
  ...['wrapOpenAI', 'wrapSDK'],
];

/** Names the imports for which `runspan/langsmith` has no replacement. */
function* importFindings(sources: Iterable<SourceFile>): Generator<Finding> {
  const staying: string[] = [];
  for (const { path, text } of sources) {
    for (const [, list = '', module = ''] of text.matchAll(IMPORT)) {
      const names = list.split(',').flatMap((one) => /^\s*(?!type\s)([\w$]+)/.exec(one)?.[1] ?? []);
      const isReplaced = (name: string): boolean => REPLACED.test(module) && REPLACED_NAMES.includes(name);
      // A name with a capital letter may be a type.
      const isValue = (name: string): boolean => /^[a-z]/.test(name) || text.includes(`new ${name}`);
      staying.push(...names.filter((name) => !isReplaced(name) && isValue(name)).map((name) => `${name} (${path})`));
    }
  }
  const page = documentationUrl('docs/from-langsmith.md#what-stays-with-langsmith');
  if (staying.length > 0)
    yield okFinding('langsmith', `imports that stay with langsmith: ${staying.join(', ')}; see ${page}`);
}
