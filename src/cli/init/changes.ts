import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { INSTRUMENTATION } from './advice.ts';
import type { Project } from './project.ts';

/** A change that `runspan init --write` makes to a file. */
export interface Change {
  readonly file: string;
  /** Names of the variables or scripts to add to the file. */
  readonly missing: readonly string[];
  /** Names of the variables or scripts that are already in the file. Not changed. */
  readonly present: readonly string[];
  readonly write: () => void;
}

export function changesOf(project: Project): Change[] {
  const changes = [variableChange(project), scriptChange(project)];
  return 'next' in project.dependencies ? [...changes, instrumentationChange(project)] : changes;
}

/** runspan also reads the `LANGSMITH_*` variables of the langsmith package. */
export function variablesToSet({ name, dependencies }: Project): Record<string, string> {
  if ('langsmith' in dependencies) return { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: '', LANGSMITH_PROJECT: name };
  return { RUNSPAN_ENDPOINT: 'http://127.0.0.1:4777', RUNSPAN_API_KEY: '', RUNSPAN_PROJECT: name };
}

/** Matches the start of a script that runs Node, after optional variable assignments. */
const NODE = /^((?:cross-env |\w+=\S* )*(?:node|tsx)) (?!watch )/;

/** Node does not read `.env` itself, but Next.js does. */
const FLAGS = '--env-file=.env --import runspan/register';

/** Returns scripts that start the program with runspan, based on the existing scripts. */
export function scriptsOf({ scripts, packageManager, dependencies }: Project): Record<string, string> {
  const dev = ['dev', 'start:dev', 'start'].find((name) => name in scripts);
  const start = [scripts['start:prod'], scripts.start].find((script) => script !== undefined && NODE.test(script));
  const isRead = start?.includes('--env-file') || 'next' in dependencies;
  const flags = isRead ? '--import runspan/register' : FLAGS;
  return {
    ...(dev !== undefined && { 'dev:trace': `runspan dev -- ${packageManager} run ${dev}` }),
    ...(start !== undefined && { 'start:trace': start.replace(NODE, `$1 ${flags} `) }),
  };
}

/** Packages of platforms that start the program themselves. */
const PLATFORMS = ['next', 'wrangler', 'serverless', 'sst', 'aws-cdk-lib', '@types/aws-lambda'];

/** Returns commands that start the program with runspan and need no new script. */
export function commandsOf(project: Project): string[] {
  const scripts = Object.values(scriptsOf(project));
  if (scripts.length === 0 && !PLATFORMS.some((name) => name in project.dependencies)) {
    const { main = 'app.js' } = project;
    return [`npx runspan dev -- node ${main}`, `node ${FLAGS} ${main}`];
  }
  // A shell, unlike a package manager, does not find these programs in node_modules.
  return scripts.map((script) => script.replace(/^((?:\w+=\S* )*)(?=(?:runspan|tsx|cross-env) )/, '$1npx '));
}

/** Returns the path of Next.js's instrumentation file. If the routes are in `src`, so is the file. */
export function instrumentationFileOf({ folder, isTypeScript }: Project): string {
  const within = existsSync(join(folder, 'src/app')) || existsSync(join(folder, 'src/pages')) ? 'src/' : '';
  const exists = (extension: string): boolean => existsSync(join(folder, `${within}instrumentation.${extension}`));
  return `${within}instrumentation.${exists('ts') || (isTypeScript && !exists('js')) ? 'ts' : 'js'}`;
}

function variableChange(project: Project): Change {
  const path = join(project.folder, '.env.example');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const variables = variablesToSet(project);
  const [missing, present] = split(variables, (name) => new RegExp(`^[\\s#]*(export )?${name}=`, 'm').test(text));
  const lines = missing.map((name) => `${name}=${variables[name]}\n`).join('');
  const write = (): void => appendFileSync(path, text === '' || text.endsWith('\n') ? lines : `\n${lines}`);
  return { file: '.env.example', missing, present, write };
}

function scriptChange(project: Project): Change {
  const scripts = scriptsOf(project);
  const [missing, present] = split(scripts, (name) => name in project.scripts);
  const write = (): void => {
    const path = join(project.folder, 'package.json');
    const text = readFileSync(path, 'utf8');
    const manifest = JSON.parse(text.replace(/^\ufeff/, ''));
    for (const name of missing) manifest.scripts[name] = scripts[name];
    const lines = `${JSON.stringify(manifest, undefined, /^\{\r?\n([ \t]+)/.exec(text)?.[1] ?? 2)}\n`;
    writeFileSync(path, text.includes('\r\n') ? lines.replaceAll('\n', '\r\n') : lines);
  };
  return { file: 'package.json', missing, present, write };
}

function instrumentationChange(project: Project): Change {
  const file = instrumentationFileOf(project);
  const path = join(project.folder, file);
  const [missing, present] = split({ register: '' }, () => existsSync(path));
  return { file, missing, present, write: () => writeFileSync(path, `${INSTRUMENTATION}\n`, { flag: 'wx' }) };
}

function split(values: Readonly<Record<string, string>>, isPresent: (name: string) => boolean): [string[], string[]] {
  const names = Object.keys(values);
  return [names.filter((name) => !isPresent(name)), names.filter(isPresent)];
}
