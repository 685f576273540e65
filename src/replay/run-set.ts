import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { RunspanError } from '../base/errors.ts';
import { ignoreErrors } from '../base/guard.ts';
import { firstLine, messageOf, safeText, shown, visible } from '../base/text.ts';
import { devEnv } from '../config/environment.ts';
import { isFields } from '../payload/fields.ts';
import { secretPatterns } from '../payload/redaction/patterns.ts';
import { redact, shownText } from '../payload/redaction/redact.ts';
import type { RunRecord } from '../run/record.ts';
import { startRun, withRun } from '../run/start-run.ts';
import type { RecordedRun } from '../testing/record-runs.ts';
import { parseFixture } from './fixture.ts';
import type { ReplayJob } from './fixture-replay.ts';
import { checkedResult, mismatchesIn } from './replayed.ts';

/** An example of a set: a line of `runspan-sets/<name>.jsonl`. */
export interface SetExample {
  readonly inputs: Record<string, unknown>;
  /** The expected outputs. A text is `{ outputs: text }`. */
  readonly outputs?: Record<string, unknown>;
  /** If there is no `source_run_id`, the field `name` is the id of the case. */
  readonly metadata?: Record<string, unknown>;
  /** Id of the run from which the example was made. */
  readonly source_run_id?: string;
}

/** Options of `runSet`. */
export interface SetOptions {
  /** Imports and calls the application. The case fails if this throws. */
  run: (inputs: SetExample['inputs'], example: SetExample) => unknown;
  /**
   * Judge what `run` has returned, as it is recorded: a text is `{ outputs: text }`. Each returns `true`, `false` or a
   * finite number. Any other result counts as `false`, and so does an error, for example of an assertion.
   */
  scores: Record<string, (result: { outputs: Record<string, unknown>; example: SetExample }) => unknown>;
}

/** The result of a case, a line of the report for `runspan test --set`. One that is read from a table has no runs. */
export interface CaseResult {
  /** Why the case has failed. Empty if the result is read from a table. Undefined if the scores were called. */
  readonly problem?: string;
  readonly scores: readonly Score[];
  readonly runs?: readonly RunRecord[];
}

/** A score, with what was returned instead of one, or the message of the error. */
type Score = { readonly name: string; readonly value: boolean | number; readonly problem?: string };

/**
 * Runs an application with each example of a set in the working folder. Model calls are answered from the fixtures that
 * `runspan test --set` writes, and examples without one are left out. With `--live`, all examples run, and calls are sent.
 *
 * Throws `RUNSPAN_SET_FAILED` if a case fails, a score is `false`, or nothing was judged. If `runspan test --set` has
 * started the test, the command judges the results instead.
 */
export async function runSet(name: string, options: SetOptions): Promise<void> {
  const { setReport: file, setLive: isLive = false } = devEnv();
  const results = new Map<string, CaseResult>();
  for (const score of Object.keys(options.scores))
    if (!/^[\w.-]+$/.test(score))
      throw invalid(`the name of a score to have letters, digits, . _ -, got ${shown(score)}`);
  const { answerFetch } = await import('../integrations/fetch/record-fetch.ts');
  // A client that the first case creates keeps this `fetch`, so that it stays until the last case has ended.
  const release = answerFetch((_input, _init, send) => send());
  try {
    for (const [id, example] of readSet(name)) {
      const fixture = setFixture(name, id);
      if (!isLive && !existsSync(fixture)) continue;
      const recorded = async () => (isLive ? LIVE : parseFixture(readFileSync(fixture, 'utf8'), fixture));
      const result = await recorded()
        .then((job) => resultOf({ ...job, mode: 'strict', name: `${name} · ${id}` }, example, options))
        .catch((error: unknown): CaseResult => ({ problem: messageOf(error), scores: [] }));
      if (file !== undefined) appendFileSync(file, `${JSON.stringify([name, id, result])}\n`);
      // The runs of all cases may not fit into memory.
      results.set(id, { ...result, runs: [] });
    }
  } finally {
    release(false);
  }
  const problems = [...results].flatMap(([id, result]) => (isBad(result) ? `${id}: ${cellOf(result)}` : []));
  if ([...results.values()].every(({ scores }) => scores.length === 0))
    problems.push('nothing was judged: no case has both a fixture and a score');
  if (file === undefined && problems.length > 0) throw new RunspanError('RUNSPAN_SET_FAILED', problems.join('\n'));
}

const LIVE: ReplayJob = { runspan: 1, name: '', trace: '', mode: 'strict', inputs: {}, calls: [], liveFrom: 1 };

async function resultOf(job: ReplayJob, example: SetExample, { run, scores }: SetOptions): Promise<CaseResult> {
  const { inThisProcess } = await import('./in-process.ts');
  // Many programs add messages to their inputs. The scores get the example as it is in the set.
  const given: SetExample = JSON.parse(JSON.stringify(example));
  const failures: string[] = [];
  let thrown: string | undefined;
  const result = await inThisProcess(job, async () => {
    const root = startRun({ name: job.name, inputs: given.inputs, root: true });
    try {
      root.end(await withRun(root, () => run(given.inputs, given)));
    } catch (error) {
      root.fail(error);
      thrown = messageOf(error);
    }
  });
  // The answer to a request that differs contains the difference, which is added below.
  if (thrown !== undefined && !mismatchesIn(result.events).some((text) => thrown?.includes(firstLine(text))))
    failures.push(thrown);
  const runs = (result.runs as RecordedRun[]).map(({ attachments: _, ...record }): RunRecord => record);
  try {
    checkedResult(job, result);
  } catch (error) {
    const [problem] = (error as RunspanError).message.split('\n\n');
    failures.push(`${messageOf(problem)}; use --live, or record the program again`);
  }
  if (failures.length > 0) return { problem: failures.join('; '), scores: [], runs };
  const found: Score[] = [];
  const judgedJson = JSON.stringify({ example, outputs: runs[0]?.outputs ?? {} });
  for (const [name, score] of Object.entries(scores)) {
    const judged = Promise.resolve(JSON.parse(judgedJson)).then(score);
    const value: unknown = await judged.catch(messageOf);
    if (typeof value === 'boolean' || Number.isFinite(value)) found.push({ name, value: value as Score['value'] });
    else found.push({ name, value: false, problem: safeText(value) });
  }
  return { scores: found, runs };
}

export function isBad(result: CaseResult | undefined): boolean {
  return result?.problem !== undefined || result?.scores.some(({ value }) => value === false) === true;
}

/** Returns the text of a result in a table. A case without a result was not run. */
export function cellOf(result: CaseResult | undefined): string {
  if (result === undefined) return 'not run';
  const { problem, scores } = result;
  if (problem !== undefined) return `failed${asCode(problem)}`;
  return scores.map((score) => `${score.name}: ${score.value}${asCode(score.problem)}`).join(', ') || 'no score';
}

/** Reads the text of a result, without the reasons. Throws if the text is none. */
export function resultIn(cell: string): CaseResult | undefined {
  const text = cell.replace(/ `[^`]*`|❌ /g, '');
  if (text === 'not run') return undefined;
  if (text === 'failed') return { problem: '', scores: [] };
  const scores = text === 'no score' ? [] : text.split(', ');
  return { scores: scores.map(scoreIn) };
}

function scoreIn(text: string): Score {
  const [, name, value] = /^([\w.-]+): (true|false|-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw invalid(`the name and the value of a score, got ${shown(text)}`);
  return { name, value: JSON.parse(value) };
}

/** Returns a reason as Markdown code that breaks no table, with secrets masked. */
function asCode(reason = ''): string {
  const safe = visible(shownText(reason, redact({ patterns: secretPatterns }), []));
  return safe && ` \`${safe.replaceAll('`', "'").replaceAll('|', '¦')}\``;
}

/** Matches the name of a set or a case, which is also the name of a file. */
export const SET_NAME: RegExp = /^(?!\.)(?!.*\.\.)[\w.-]{1,64}$/;

export const SET_FOLDER = 'runspan-sets';

export function setFile(set: string): string {
  return `${SET_FOLDER}/${set}.jsonl`;
}

export function setFixture(set: string, id: string): string {
  return `${SET_FOLDER}/${set}/${id}.trace.json`;
}

/** Reads the examples of a set by the ids of their cases, which do not depend on the order of the lines. */
export function readSet(set: string): Map<string, SetExample> {
  const examples = new Map<string, SetExample>();
  const file = setFile(set);
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (line.trim() === '') continue;
    const example = exampleIn(line);
    const { inputs, metadata, source_run_id: id = metadata?.name } = example ?? {};
    const hash = createHash('sha256').update(`${JSON.stringify(inputs)}`);
    const key = typeof id === 'string' && SET_NAME.test(id) ? id : hash.digest('hex').slice(0, 12);
    const place = `line ${at + 1} of ${file}`;
    if (example === undefined || !isFields(inputs)) throw invalid(`${place} to be a JSON object with \`inputs\``);
    if (examples.has(key)) throw invalid(`${place} to be another example than ${key}`);
    examples.set(key, example);
  }
  return examples;
}

/** Reads a line of a set. Returns undefined if it is no JSON object. */
export function exampleIn(line: string): SetExample | undefined {
  // `trim` also removes a byte order mark.
  const example: unknown = ignoreErrors(() => JSON.parse(line.trim()));
  return isFields(example) ? (example as unknown as SetExample) : undefined;
}

function invalid(expected: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${expected}`);
}
