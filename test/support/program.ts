import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './folders.ts';

/** For a machine that is busy with other things; what hangs is ended. */
const LIFE_MAX_MS = 25_000;

/** How a program ended, with all that it printed. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs. */
export interface Started {
  readonly child: ChildProcess;
  /** Resolves as soon as standard output has something that matches; rejects when the program ends without it. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<Ended>;
}

type Variables = Readonly<Record<string, string>>;

/** Starts Node, the same one as the tests run on, with nothing of ours in its environment but `env`. */
export function startNode(
  args: readonly string[],
  env: Variables = {},
  cwd: string = root,
  lifeMaxMs: number = LIFE_MAX_MS,
): Started {
  const child = spawn(process.execPath, args, { cwd, env: { ...bareEnvironment(), ...env }, timeout: lifeMaxMs });
  let stdout = '';
  let stderr = '';
  let look = (): void => {};
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk;
    look();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
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

/** The same, to its end. */
export function runNode(args: readonly string[], env?: Variables, cwd?: string): Promise<Ended> {
  return startNode(args, env, cwd).ended;
}

/** Starts the built command, as `npx runspan` would. */
export function startRunspan(args: readonly string[], env?: Variables): Started {
  const command = join(root, 'dist/cli/main.js');
  if (!existsSync(command)) throw new Error(`${command} is missing; build it first: npm run build`);
  return startNode([command, ...args], env);
}

/** The same, to its end. */
export function runRunspan(args: readonly string[], env?: Variables): Promise<Ended> {
  return startRunspan(args, env).ended;
}

/** Arguments of Node that run a module given as text. */
export function moduleText(code: string): string[] {
  return ['--input-type=module', '-e', code];
}

/** npm and vitest hand their settings down in the environment; a user's shell has none of them. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  const ours =
    /^(npm_(?!config_(registry|cache|cafile|userconfig|.*proxy))|VITEST|NODE_(ENV|OPTIONS|V8)|(RUNSPAN|LANGSMITH|LANGCHAIN|OTEL|OPENAI|ANTHROPIC)_)/i;
  const others = Object.entries(process.env).filter(([name]) => !ours.test(name));
  // What tests send is not kept among what the user has.
  return { ...Object.fromEntries(others), RUNSPAN_STORE: 'memory' };
}
