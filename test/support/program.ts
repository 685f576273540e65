import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, temporaryFolder } from './folders.ts';

/** A program that hangs is killed after this time. Long enough for a loaded machine. */
const LIFE_MAX_MS = 60_000;

/** The exit code or signal of a program, and its output. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  /** Resolves when standard output matches the pattern. Rejects if the program ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<Ended>;
}

type Variables = Readonly<Record<string, string>>;

const { allowedNodeEnvironmentFlags: known } = process;
/** Flags of Node that allow reading files, but not writing them. */
export const NO_WRITING: readonly string[] = [
  known.has('--permission') ? '--permission' : '--experimental-permission',
  '--allow-fs-read=*',
  ...(known.has('--allow-net') ? ['--allow-net'] : []),
];

/** Starts the Node that runs the tests. Of the variables of runspan, the environment contains only `env`. */
export function startNode(args: readonly string[], env?: Variables, cwd?: string, lifeMaxMs?: number): Started {
  return startProgram([process.execPath, ...args], env, cwd, lifeMaxMs);
}

/** Starts a program. Of the variables of runspan, the environment contains only `env`. */
export function startProgram(
  [program = '', ...args]: readonly string[],
  env: Variables = {},
  cwd: string = root,
  lifeMaxMs: number = LIFE_MAX_MS,
): Started {
  const child = spawn(program, args, {
    cwd,
    env: { ...bareEnvironment(), ...ownSpool(args, env), ...env },
    timeout: lifeMaxMs,
  });
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

export function runNode(args: readonly string[], env?: Variables, cwd?: string): Promise<Ended> {
  return startNode(args, env, cwd).ended;
}

export function startRunspan(args: readonly string[], env?: Variables, cwd?: string, lifeMaxMs?: number): Started {
  const command = join(root, 'dist/cli/main.js');
  if (!existsSync(command)) throw new Error(`${command} is missing; build it first: npm run build`);
  return startNode([command, ...args], env, cwd, lifeMaxMs);
}

export function runRunspan(args: readonly string[], env?: Variables): Promise<Ended> {
  return startRunspan(args, env).ended;
}

let spools: ReturnType<typeof temporaryFolder> | undefined;
let spoolsUsed = 0;

/**
 * With `runspan/register`, runs that a program leaves are kept on disk. Another program must not meet them, so that each
 * program has a spool of its own, unless the test sets one or the home folder.
 */
function ownSpool(args: readonly string[], env: Variables): Variables {
  const isRegistered = [...args, env.NODE_OPTIONS].some((text) => /(?:runspan|dist)\/register/.test(text ?? ''));
  if (!isRegistered || env.HOME !== undefined || env.RUNSPAN_SPOOL_DIR !== undefined) return {};
  if (spools === undefined) {
    spools = temporaryFolder();
    process.once('exit', spools.remove);
  }
  return { RUNSPAN_SPOOL_DIR: join(spools.path, String(++spoolsUsed)) };
}

/** Returns arguments of Node that run the code as a module. */
export function moduleText(code: string): string[] {
  return ['--input-type=module', '-e', code];
}

/** Returns the environment without the variables of npm, vitest and runspan. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  const ours =
    /^(npm_(?!config_(registry|cache|cafile|userconfig|.*proxy))|VITEST|(NO|FORCE)_COLOR$|NODE_(ENV|OPTIONS|V8)|(RUNSPAN|LANGSMITH|LANGCHAIN|OTEL|OPENAI|ANTHROPIC)_)/i;
  const others = Object.entries(process.env).filter(([name]) => !ours.test(name));
  // The runs of tests must not be stored in the file of the user.
  return { ...Object.fromEntries(others), RUNSPAN_STORE: 'memory' };
}
