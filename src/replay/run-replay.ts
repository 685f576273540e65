import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunspanError } from '../base/errors.ts';
import { firstLine } from '../base/text.ts';
import { type Checks, checkedOptions, isObject, TRUE_OR_FALSE, WHOLE_FROM_1 } from '../config/checker.ts';
import { type Fixture, fixtureText, parseFixture, type ReplayMode } from './fixture.ts';
import type { ReplayJob } from './fixture-replay.ts';
import { checkedResult, failure, type Replayed } from './replayed.ts';
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
   * the tools, the number of earlier answers and `stream` are the same.
   * @default the mode of the fixture
   */
  mode?: ReplayMode;
  /** Number of the first model call that is sent to the service, from 1. @default no call is sent */
  liveFrom?: number;
  /**
   * Whether to start the program with the real services and to write the fixture again. Not possible with `run`.
   * @default false
   */
  record?: boolean;
  /**
   * Environment variables of a program in its own process. Removes a variable if its value is `undefined`.
   * @default none
   */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * Time after which a program in its own process is stopped, in milliseconds. `replay` then throws
   * `RUNSPAN_REPLAY_FAILED`, unless the recorded trace has finished.
   * @default 60_000
   */
  timeoutMs?: number;
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
  const { run, mode, liveFrom, record, env, timeoutMs = 60_000 } = checkedOptions('the options', options, CHECKS);
  if (record && (run ?? liveFrom) !== undefined)
    throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected `record` without `run` and `liveFrom`');
  const file = fixture instanceof URL ? fileURLToPath(fixture) : resolve(fixture);
  const recorded = parseFixture(readFileSync(file, 'utf8'), file);
  const job: ReplayJob = { ...recorded, mode: mode ?? recorded.mode, liveFrom: record ? 1 : liveFrom };
  if (run !== undefined) {
    const { inThisProcess } = await import('./in-process.ts');
    return checkedResult(job, await inThisProcess(job, run));
  }
  const { entry } = recorded;
  if (entry === undefined)
    throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected the option \`run\`: ${file} has no entry to start`);
  const { inOwnProcess, packageFolder } = await import('./own-process.ts');
  const result = await inOwnProcess(job, { entry, folder: packageFolder(dirname(file)), env, timeoutMs });
  if (!record) return checkedResult(job, result);
  const again = await recordedAgain(job, result.runs as ExportedRun[]);
  writeFileSync(file, fixtureText({ ...recorded, calls: again }));
  return { runs: result.runs, notes: [], wasStopped: false };
}

/** Returns the calls of a trace that replaces the recorded one. Throws if the trace cannot. */
async function recordedAgain({ mode }: ReplayJob, runs: readonly ExportedRun[]): Promise<Fixture['calls']> {
  const { fixtureOf, recordedTrace } = await import('./fixture-of.ts');
  const trace = recordedTrace(runs);
  const { fixture, missing } = fixtureOf(trace, mode);
  const hasNoResponse = fixture.calls.some(({ status }) => status === undefined);
  const problems = hasNoResponse ? ['a model call got no response'] : [...missing];
  const { error } = trace.root;
  if (mode === 'strict' && error !== undefined) problems.push(`the program failed: ${firstLine(error)}`);
  if (problems.length > 0) throw failure(`The fixture is unchanged, because ${problems.join('; ')}`);
  return fixture.calls;
}
