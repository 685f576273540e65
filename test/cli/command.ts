import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../package/packed.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** For a machine that is busy with other things; what hangs is ended. */
const LIFE_MAX_MS = 25_000;

const runspan = join(root, 'dist/cli/main.js');

/** How a program ended, with all that it printed. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program of Node that runs. */
export interface Started {
  readonly child: ChildProcess;
  /** Resolves as soon as standard output has something that matches; rejects when the program ends without it. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<Ended>;
}

/** Starts the built command, as `npx runspan` would, with nothing of ours in its environment but `env`. */
export function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  if (!existsSync(runspan)) throw new Error(`${runspan} is missing; build it first: npm run build`);
  return startNode([runspan, ...args], env);
}

/** Runs the command with these arguments to its end. */
export function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return start(args, env).ended;
}

/** Starts Node in the checkout, likewise. */
export function startNode(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...bareEnvironment(), ...env },
    timeout: LIFE_MAX_MS,
  });
  let stdout = '';
  let stderr = '';
  let look = (): void => {};
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
    look();
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const printed = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      look = () => {
        const match = pattern.exec(stdout);
        if (match !== null) resolve(match);
      };
      void ended.then(() => reject(new Error(`ended without printing ${pattern}:\n${stderr}${stdout}`)));
      look();
    });
  return { child, printed, ended };
}

/** Arguments of Node that run a module given as text. */
export function moduleText(code: string): string[] {
  return ['--input-type=module', '-e', code];
}
