import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RunspanError } from '../base/errors.ts';
import { type Checks, checkedOptions, isObject, TRUE_OR_FALSE, WHOLE_FROM_1 } from '../config/checker.ts';
import { environmentWith } from '../config/environment.ts';
import { fieldsOf, parsedJson } from '../payload/fields.ts';
import { environment } from '../platform/node.ts';
import type { RunRecord } from '../run/record.ts';
import { recordRuns } from '../testing/record-runs.ts';
import { outlineOf } from '../testing/snapshot.ts';
import type { ReplayJob } from './child.ts';
import { type Entry, type Fixture, parseFixture, type ReplayMode } from './fixture.ts';
import type { ReplayEvent } from './replay.ts';
import type { ExportedRun } from './trace-calls.ts';

/** Options of `replay`. */
export interface ReplayOptions {
  /**
   * Runs the program in this process. Required if the fixture does not tell how the program was started.
   * @default starts the recorded program in a process of its own
   */
  run?: () => unknown;
  /**
   * How a recorded call is found for a request. `strict`: the whole request is the same. `failed`: the model, the names of
   * the tools and the number of earlier answers are the same.
   * @default the mode of the fixture
   */
  mode?: ReplayMode;
  /**
   * Number of the first model call that is sent to the service, from 1.
   * @default no call is sent
   */
  liveFrom?: number;
  /**
   * Whether to start the program with the real services and to write the fixture again. Not possible with `run`.
   * @default false
   */
  record?: boolean;
  /** Environment variables of the program. Removes a variable if its value is `undefined`. @default none */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * Time after which the program is stopped, in milliseconds.
   * @default 60_000
   */
  timeoutMs?: number;
}

/** The result of `replay`. The matchers accept it like the result of `recordRuns`. */
export interface Replayed {
  /** The runs of the replayed trace, parents before children. */
  readonly runs: readonly RunRecord[];
  /** The differences from the recorded requests that the mode `failed` has accepted, such as other results of tools. */
  readonly notes: readonly string[];
  /**
   * Whether the program was stopped in the mode `failed`, because it has made a call after the last recorded one. Its open
   * runs have no `end_time`.
   */
  readonly wasStopped: boolean;
}

const CHECKS: Checks<ReplayOptions> = {
  run: ['a function', (value) => typeof value === 'function'],
  mode: ["'strict' or 'failed'", (value) => value === 'strict' || value === 'failed'],
  liveFrom: WHOLE_FROM_1,
  record: TRUE_OR_FALSE,
  env: ['an object', isObject],
  timeoutMs: WHOLE_FROM_1,
};

/**
 * Runs a program again whose model calls `runspan test` has written to a fixture. The calls are answered from the
 * fixture; tools and all other code run for real. `fixture` is the path or file URL of the fixture.
 *
 * Throws `RUNSPAN_REPLAY_MISMATCH` with the differences if the program makes another call than the recorded ones, or in
 * the mode `strict` fewer calls. Throws `RUNSPAN_REPLAY_FAILED` if the program records no such trace or takes too long. A
 * failure of a program in its own process is not thrown, because the trace shows it. An error of `run` is thrown.
 */
export async function replay(fixture: string | URL, options: ReplayOptions = {}): Promise<Replayed> {
  const checked = checkedOptions('the options', options, CHECKS);
  const file = fixture instanceof URL ? fileURLToPath(fixture) : resolve(fixture);
  const recorded = parseFixture(readFileSync(file, 'utf8'), file);
  const { mode = recorded.mode, liveFrom, run, record = false } = checked;
  const job: ReplayJob = { ...recorded, mode, liveFrom };
  if (record && (run ?? liveFrom) !== undefined)
    throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected `record` without `run` and `liveFrom`');
  if (run !== undefined) return checkedResult(job, await inThisProcess(job, run));
  const { entry } = recorded;
  if (entry === undefined) {
    throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected the option \`run\`: ${file} has no entry to start`);
  }
  const program: Program = { entry, folder: packageFolder(dirname(file)), options: checked };
  if (!record) return checkedResult(job, await inOwnProcess(program, job));
  const { runs } = await inOwnProcess(program, { ...recorded, liveFrom: 1 });
  const { fixtureOf, fixtureText, recordedTrace } = await import('./fixture-of.ts');
  const { fixture: again, missing } = fixtureOf(recordedTrace(runs as ExportedRun[]), mode);
  const problems = again.calls.some(({ status }) => status === undefined)
    ? ['a model call got no response']
    : [...missing];
  const error = rootOf(runs)?.error;
  if (mode === 'strict' && error !== undefined) problems.push(`the program failed: ${error.split('\n', 1)[0]}`);
  if (problems.length > 0) throw failure(`The fixture is unchanged, because ${problems.join('; ')}`);
  writeFileSync(file, fixtureText({ ...recorded, calls: again.calls }));
  return { runs, notes: [], wasStopped: false };
}

interface Result {
  readonly runs: readonly RunRecord[];
  readonly events: readonly ReplayEvent[];
  /** Called if the program makes the recorded calls. Throws if the program has failed in this process. */
  readonly check?: () => void;
}

function checkedResult(job: ReplayJob, { runs, events, check }: Result): Replayed {
  const answered = events.flatMap((event) => ('answered' in event ? event.answered : []));
  const notes = events.flatMap((event) => ('notes' in event ? event.notes : []));
  const problems = [...mismatchesIn(events), ...unmatched(job, answered)];
  if (problems.length === 0) {
    check?.();
    return { runs, notes, wasStopped: events.some((event) => 'ended' in event) };
  }
  const accepted = notes.length === 0 ? [] : [`accepted before:\n  ${notes.join('\n  ')}`];
  const replayed = `Replayed:\n  ${outlineOf(runs).replaceAll('\n', '\n  ')}`;
  throw new RunspanError('RUNSPAN_REPLAY_MISMATCH', [...problems, ...accepted, ADVICE, replayed].join('\n\n'));
}

const ADVICE =
  'If the change is intended, write the fixture again, with the option `record` or with `runspan test`. The mode `failed` accepts other results of tools.';

/** Names the recorded calls that the program has not made as often as it must. */
function unmatched({ mode, calls, required = 0, liveFrom }: ReplayJob, answered: readonly number[]): string[] {
  const shown = (index: number): string => `${calls[index]?.call} (${index + 1})`;
  const twice = answered.filter((index, at) => answered.indexOf(index) !== at).map(shown);
  const must = liveFrom === undefined ? (mode === 'strict' ? calls.length : required) : 0;
  const left = [...calls.keys()].filter((index) => index < must && !answered.includes(index)).map(shown);
  return [
    ...(twice.length > 0 ? [`several processes of the program have made these calls: ${twice.join(', ')}`] : []),
    ...(left.length > 0 ? [`these recorded calls were not made: ${left.join(', ')}`] : []),
  ];
}

function mismatchesIn(events: readonly ReplayEvent[]): string[] {
  return events.flatMap((event) => ('mismatch' in event ? event.mismatch : []));
}

let isReplaying = false;

async function inThisProcess(job: ReplayJob, run: () => unknown): Promise<Result> {
  if (isReplaying) throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected one replay with `run` at a time');
  isReplaying = true;
  const [{ Replay }, { answerFetch }] = await Promise.all([
    import('./replay.ts'),
    import('../integrations/fetch/record-fetch.ts'),
  ]);
  const events: ReplayEvent[] = [];
  const recorder = recordRuns();
  const inReplay = new AsyncLocalStorage<true>();
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const replay = new Replay(job, job.liveFrom, (event) => {
    events.push(event);
    if ('ended' in event) end();
  });
  const stop = answerFetch((input, init, send) => (inReplay.getStore() ? replay.answer(input, init, send) : send()));
  let check = (): void => {};
  try {
    await Promise.race([inReplay.run(true, run), ended]);
  } catch (error) {
    check = () => {
      throw error;
    };
  } finally {
    // A program that has not ended may make further calls, which must not be sent.
    stop(events.some((event) => 'ended' in event));
    recorder.stop();
    isReplaying = false;
  }
  if (events.length === 0 && job.calls.length > 0)
    events.push({ mismatch: 'no model call was made with the `fetch` of the replay: import the program within `run`' });
  return { runs: recorder.runs, events, check };
}

interface Program {
  readonly entry: Entry;
  /** The folder with the package.json to which the script is relative. */
  readonly folder: string;
  readonly options: ReplayOptions;
}

const OF_TEST = /^(RUNSPAN_|JEST_WORKER_ID$|VITEST)/;

const CLI: string = fileURLToPath(new URL('main.js', new URL('../cli/', import.meta.url)));

/** Starts a program with `runspan dev`, which prints its finished traces. */
async function inOwnProcess({ entry, folder, options }: Program, given: ReplayJob): Promise<Result> {
  const temporary = mkdtempSync(join(tmpdir(), 'runspan-replay-'));
  try {
    const [file, report] = [join(temporary, 'job.json'), join(temporary, 'events.jsonl')];
    const job: ReplayJob = { ...given, report };
    writeFileSync(file, JSON.stringify(job));
    const { script, args, folder: cwd = '.' } = entry;
    // A file with secrets is not on each machine.
    const nodeOptions = entry.options.filter((option) => {
      const [, envFile] = /^--env-file=(.*)$/.exec(option) ?? [];
      return envFile === undefined || existsSync(join(folder, cwd, envFile));
    });
    if (!existsSync(join(folder, script)))
      throw failure(`The program of the fixture is missing: ${join(folder, script)}`);
    const command = [process.execPath, ...nodeOptions, join(folder, script), ...args];
    const variables = {
      RUNSPAN_REPLAY: file,
      ...(job.request !== undefined && { PORT: '0' }),
      ...(job.liveFrom === undefined && missingKeys(job)),
    };
    // The program must not know of the test runner, and the settings of runspan are those of the test.
    const others = Object.keys(environment()).filter((name) => OF_TEST.test(name));
    const own = Object.fromEntries(others.map((name) => [name, undefined]));
    const { traces, stderr, isLate } = await traced(
      job,
      [CLI, 'dev', '--memory', '--port', '0', '--json', '--', ...command],
      { cwd: join(folder, cwd), env: environmentWith({ ...own, ...variables, ...options.env }) },
      options.timeoutMs ?? 60_000,
    );
    const events = existsSync(report) ? linesOf<ReplayEvent>(readFileSync(report, 'utf8')) : [];
    const runs = await traceLike(job, traces);
    if (runs !== undefined && !isLate)
      return { runs: events.some((event) => 'ended' in event) ? runs.map(reopened) : runs, events };
    const problem = isLate ? 'took too long' : `has recorded no trace named ${JSON.stringify(job.name)}`;
    throw failure(
      [`The program ${problem}: ${command.join(' ')}`, ...mismatchesIn(events), stderr.slice(-OUTPUT_MAX)].join('\n'),
    );
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Length of the program's output in an error, in characters. */
const OUTPUT_MAX = 4_000;

/** The keys without which the SDKs of a service send no request. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  // With a key, OpenAI Agents would send its own traces.
  openai: ['OPENAI_API_KEY', 'OPENAI_AGENTS_DISABLE_TRACING'],
  anthropic: ['ANTHROPIC_API_KEY'],
  gemini: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  cohere: ['COHERE_API_KEY'],
  mistral: ['MISTRAL_API_KEY'],
};

function missingKeys({ calls }: Fixture): Record<string, string> {
  const names = calls.flatMap(({ call }) => KEYS[call.split('.')[0] ?? ''] ?? []);
  return Object.fromEntries(names.filter((name) => !environment()[name]).map((name) => [name, '1']));
}

function failure(message: string): RunspanError {
  return new RunspanError('RUNSPAN_REPLAY_FAILED', message);
}

interface Traced {
  /** The traces with the name of the recorded one. */
  readonly traces: readonly (readonly RunRecord[])[];
  readonly stderr: string;
  /** Whether the time limit has passed before such a trace was finished. */
  readonly isLate: boolean;
}

/**
 * How long a program may run after its trace has finished, in milliseconds, and a server, which does not end by itself.
 */
const [LINGER_MS, SERVER_LINGER_MS] = [2_000, 300];
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
    // A trace is printed again if further runs arrive.
    createInterface(child.stdout).on('line', (line) => {
      const { runs = [] } = fieldsOf(parsedJson(line)) as { readonly runs?: readonly RunRecord[] };
      const root = rootOf(runs);
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

function rootOf(runs: readonly RunRecord[]): RunRecord | undefined {
  return runs.find((run) => run.parent_run_id === undefined);
}

/** Returns the first trace with the recorded inputs, or the first trace. */
async function traceLike({ inputs }: Fixture, traces: Traced['traces']): Promise<readonly RunRecord[] | undefined> {
  if (traces.length < 2) return traces[0];
  const [{ differences }, { masked }] = await Promise.all([import('./match.ts'), import('./fixture.ts')]);
  return traces.find((runs) => differences(inputs, masked(rootOf(runs)?.inputs)).length === 0) ?? traces[0];
}

function linesOf<Line>(text: string): Line[] {
  return text.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as Line)));
}

/** `runspan dev` ends the runs that a program leaves open. */
function reopened(run: RunRecord): RunRecord {
  if (run.error?.startsWith('Interrupted: ') !== true) return run;
  const { error: _, end_time: __, ...open } = run;
  return open;
}

/** Returns the nearest folder with a package.json. */
export function packageFolder(folder: string): string {
  if (existsSync(join(folder, 'package.json')) || dirname(folder) === folder) return folder;
  return packageFolder(dirname(folder));
}
