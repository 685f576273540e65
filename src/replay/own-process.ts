import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { rootIn } from '../base/forest.ts';
import { environmentWith } from '../config/environment.ts';
import { fieldsOf, parsedJson } from '../payload/fields.ts';
import { environment } from '../platform/node.ts';
import { hasProgramEnded, type RunRecord } from '../run/record.ts';
import { keyOfFormat } from '../services/keys.ts';
import { type Entry, type Fixture, masked } from './fixture.ts';
import type { ReplayEvent, ReplayJob } from './fixture-replay.ts';
import { differences } from './match.ts';
import { failure, mismatchesIn, type Result, wasStopped } from './replayed.ts';

/** A program that is started again. */
export interface Program {
  readonly entry: Entry;
  /** The folder with the package.json to which the script is relative. */
  readonly folder: string;
  /** Environment variables besides those of this process. Removes a variable if its value is `undefined`. */
  readonly env: Readonly<Record<string, string | undefined>> | undefined;
  /** Time after which the program is stopped, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Starts a program with `runspan dev`, which prints its finished traces. Throws `RUNSPAN_REPLAY_FAILED` if none of them
 * has the name of the recorded trace.
 */
export async function inOwnProcess(given: ReplayJob, { entry, folder, env, timeoutMs }: Program): Promise<Result> {
  const command = commandOf(entry, folder);
  const temporary = mkdtempSync(join(tmpdir(), 'runspan-replay-'));
  try {
    const [file, report] = [join(temporary, 'job.json'), join(temporary, 'events.jsonl')];
    const job: ReplayJob = { ...given, report };
    writeFileSync(file, JSON.stringify(job));
    writeFileSync(report, '');
    const { traces, stderr, isLate } = await traced(
      job,
      [CLI, 'dev', '--memory', '--port', '0', '--json', '--', ...command],
      { cwd: join(folder, entry.folder ?? '.'), env: environmentWith({ ...variablesOf(job, file), ...env }) },
      timeoutMs,
    );
    const lines = readFileSync(report, 'utf8').split('\n').slice(0, -1);
    const events = lines.map((line) => JSON.parse(line) as ReplayEvent);
    const runs = traceLike(job, traces);
    if (runs !== undefined && !isLate) return { runs: wasStopped(events) ? runs.map(reopened) : runs, events };
    const problem = isLate ? 'took too long' : `has recorded no trace named ${JSON.stringify(job.name)}`;
    throw failure(
      [`The program ${problem}: ${command.join(' ')}`, ...mismatchesIn(events), stderr.slice(-OUTPUT_MAX)].join('\n'),
    );
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const CLI: string = fileURLToPath(new URL('main.js', new URL('../cli/', import.meta.url)));
/** Length of the program's output in an error, in characters. */
const OUTPUT_MAX = 4_000;

function commandOf({ script, args, options, folder: cwd = '.' }: Entry, folder: string): string[] {
  const main = join(folder, script);
  if (!existsSync(main)) throw failure(`The program of the fixture is missing: ${main}`);
  // A file with secrets is not on each machine.
  const isPresent = (option: string): boolean => {
    const [, envFile] = /^--env-file=(.*)$/.exec(option) ?? [];
    return envFile === undefined || existsSync(join(folder, cwd, envFile));
  };
  return [process.execPath, ...options.filter(isPresent), main, ...args];
}

const OF_TEST = /^(RUNSPAN_|JEST_WORKER_ID$|VITEST)/;

function variablesOf(job: ReplayJob, file: string): Record<string, string | undefined> {
  // The program must not know of the test runner, and the settings of runspan are those of the test.
  const others = Object.keys(environment()).filter((name) => OF_TEST.test(name));
  const isLive = job.liveFrom !== undefined || job.calls.some((call) => call.isLive);
  return {
    ...Object.fromEntries(others.map((name) => [name, undefined])),
    RUNSPAN_REPLAY: file,
    ...(job.request !== undefined && { PORT: '0' }),
    ...(!isLive && missingKeys(job)),
  };
}

/** Returns values for the keys without which the SDKs of a service send no request. */
function missingKeys({ calls }: Fixture): Record<string, string> {
  const names = calls.flatMap(({ call }) => keyOfFormat(call)?.variables ?? []);
  return Object.fromEntries(names.filter((name) => !environment()[name]).map((name) => [name, 'replayed']));
}

interface Traced {
  /** The traces with the name of the recorded one. */
  readonly traces: readonly (readonly RunRecord[])[];
  readonly stderr: string;
  /** Whether the time limit has passed before such a trace was finished. */
  readonly isLate: boolean;
}

/** Time in milliseconds that a program has to end after its trace has finished. */
const LINGER_MS = 2_000;
/** The same for a server, which does not end by itself. */
const SERVER_LINGER_MS = 300;
/** `runspan dev` kills its program when it gets a third signal. */
const SIGNAL_MS = 1_000;

/** Runs a command until it ends, and returns the traces that it prints. */
function traced(
  { name, request }: ReplayJob,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  timeoutMs: number,
): Promise<Traced> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const traces = new Map<string, readonly RunRecord[]>();
    let [stderr, isLate] = ['', false];
    const stop = (): void => {
      isLate ||= traces.size === 0;
      child.kill();
      timer = setTimeout(stop, SIGNAL_MS);
    };
    let timer = setTimeout(stop, timeoutMs);
    // `runspan dev` prints a trace again if further runs arrive.
    createInterface(child.stdout).on('line', (line) => {
      const { runs = [] } = fieldsOf(parsedJson(line)) as { readonly runs?: readonly RunRecord[] };
      const root = rootIn(runs);
      if (root?.name !== name) return;
      traces.set(root.id, runs);
      clearTimeout(timer);
      timer = setTimeout(stop, request === undefined ? LINGER_MS : SERVER_LINGER_MS);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(timer);
      resolve({ traces: [...traces.values()], stderr, isLate });
    });
  });
}

/** Returns the first trace with the recorded inputs, or the first trace. */
function traceLike({ inputs }: Fixture, traces: Traced['traces']): readonly RunRecord[] | undefined {
  const same = traces.find((runs) => differences(inputs, masked(rootIn(runs)?.inputs)).length === 0);
  return same ?? traces[0];
}

/** `runspan dev` ends the runs that a program leaves open. */
function reopened(run: RunRecord): RunRecord {
  if (!hasProgramEnded(run)) return run;
  const { error: _, end_time: __, ...open } = run;
  return open;
}

/** Returns the nearest folder with a package.json. */
export function packageFolder(folder: string): string {
  if (existsSync(join(folder, 'package.json')) || dirname(folder) === folder) return folder;
  return packageFolder(dirname(folder));
}
