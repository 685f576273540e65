import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { RunspanError } from '../base/errors.ts';
import { ignoreErrors } from '../base/guard.ts';
import { messageOf, safeText, shown, visible } from '../base/text.ts';
import { env, parseFlag } from '../config/environment.ts';
import { isFields, numberOf } from '../payload/fields.ts';
import { secretPatterns } from '../payload/redaction/patterns.ts';
import { redact, shownText } from '../payload/redaction/redact.ts';
import type { RunRecord } from '../run/record.ts';
import { startRun, withRun } from '../run/start-run.ts';
import type { RecordedRun } from '../testing/record-runs.ts';
import { parseFixture } from './fixture.ts';
import type { ReplayJob } from './replay.ts';
import { checkedResult } from './replayed.ts';

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
  /** Imports and calls the application. The case fails if this throws or returns `false`. */
  run: (inputs: SetExample['inputs'], example: SetExample) => unknown;
  /**
   * Judge what `run` has returned, as it is recorded: a text is `{ outputs: text }`. Each returns `true`, `false` or a
   * finite number. Any other result counts as `false`, and so does an error, for example of an assertion.
   */
  scores: Record<string, (result: { outputs: Record<string, unknown>; example: SetExample }) => unknown>;
}

/** The result of a case, a line of the report for `runspan test --set`. */
export interface CaseReport {
  readonly set: string;
  readonly id: string;
  /** The scores, `no score` or `failed`, and the reasons as Markdown code. */
  readonly text: string;
  readonly runs: readonly RunRecord[];
}

/**
 * Runs an application with each example of a set in the working folder. Model calls are answered from the fixtures that
 * `runspan test --set` writes, and examples without one are left out. With `--live`, all examples run, and calls are sent.
 *
 * Throws `RUNSPAN_SET_FAILED` if a case fails, a score is `false`, or nothing was judged. If `runspan test --set` has
 * started the test, the command judges the results instead.
 */
export async function runSet(name: string, options: SetOptions): Promise<void> {
  const [file, isLive] = [env('RUNSPAN_SET_REPORT'), parseFlag(env('RUNSPAN_SET_LIVE')) === true];
  const reports: CaseReport[] = [];
  const { answerFetch } = await import('../integrations/fetch/record-fetch.ts');
  // A client that the first case creates keeps this `fetch`, so that it stays until the last case has ended.
  const release = answerFetch((_input, _init, send) => send());
  try {
    for (const [id, example] of readSet(name)) {
      const fixture = setFixture(name, id);
      if (!isLive && !existsSync(fixture)) continue;
      const recorded = isLive ? LIVE : parseFixture(readFileSync(fixture, 'utf8'), fixture);
      const result = await resultOf({ ...recorded, mode: 'strict', name: `${name} · ${id}` }, example, options);
      if (file !== undefined) appendFileSync(file, `${JSON.stringify({ set: name, id, ...result })}\n`);
      // The runs of all cases may not fit into memory.
      reports.push({ set: name, id, text: result.text, runs: [] });
    }
  } finally {
    release(false);
  }
  const problems = reports.filter(isBad).map(({ id, text }) => `${id}: ${text}`);
  if (!reports.some(({ text }) => scoresIn(text).size > 1))
    problems.push('nothing was judged: no case has both a fixture and a score');
  if (file === undefined && problems.length > 0) throw new RunspanError('RUNSPAN_SET_FAILED', problems.join('\n'));
}

const LIVE: ReplayJob = { runspan: 1, name: '', trace: '', mode: 'strict', inputs: {}, calls: [], liveFrom: 1 };

async function resultOf(job: ReplayJob, example: SetExample, { run, scores }: SetOptions) {
  const { inThisProcess } = await import('./in-process.ts');
  // Many programs add messages to their inputs. The scores get the example as it is in the set.
  const given: SetExample = JSON.parse(JSON.stringify(example));
  const failures: string[] = [];
  const result = await inThisProcess(job, async () => {
    const root = startRun({ name: job.name, inputs: given.inputs, root: true });
    try {
      const returned = await withRun(root, () => run(given.inputs, given));
      root.end(returned);
      if (returned === false) failures.push('run returned false');
    } catch (error) {
      root.fail(error);
      // The difference from the recorded call is added below.
      if (!messageOf(error).includes('runspan replay:')) failures.push(messageOf(error));
    }
  });
  const runs = (result.runs as RecordedRun[]).map(({ attachments: _, ...record }): RunRecord => record);
  try {
    checkedResult(job, result);
  } catch (error) {
    const [problem] = (error as RunspanError).message.split('\n\n');
    failures.push(`${messageOf(problem)}; use --live, or record the program again`);
  }
  if (failures.length > 0) return { text: `failed ${asCode(failures.join('; '))}`, runs };
  const texts: string[] = [];
  const judgedJson = JSON.stringify({ example, outputs: runs[0]?.outputs ?? {} });
  for (const [name, score] of Object.entries(scores)) {
    const judged = Promise.resolve(JSON.parse(judgedJson)).then(score);
    const value: unknown = await judged.catch(messageOf);
    const isScore = typeof value === 'boolean' || numberOf(value) !== undefined;
    texts.push(isScore ? `${name}: ${value}` : `${name}: false ${asCode(safeText(value))}`);
  }
  return { text: texts.join(', ') || 'no score', runs };
}

/** Reads the scores in a result. The score without a name is whether `run` worked. Throws if the text is no result. */
export function scoresIn(result: string): ReadonlyMap<string, boolean | number> {
  const text = result.replace(/`[^`]*`|❌/g, '').trim();
  if (text === 'not run') return new Map();
  const scores = new Map<string, boolean | number>([['', text !== 'failed']]);
  for (const part of /^(failed|no score)$/.test(text) ? [] : text.split(/ *, /)) {
    const [, name = '', value] = /^([\w.-]+): (true|false|-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/.exec(part) ?? [];
    if (value === undefined) throw invalid(`the name and the value of a score, got ${shown(part)}`);
    scores.set(name, JSON.parse(value));
  }
  return scores;
}

export function isBad({ text }: CaseReport): boolean {
  return [...scoresIn(text).values()].includes(false);
}

/** Returns a text as Markdown code that breaks no table, with secrets masked. */
export function asCode(text: string): string {
  const safe = visible(shownText(text, redact({ patterns: secretPatterns }), []));
  return `\`${safe.replaceAll('`', "'").replaceAll('|', '¦')}\``;
}

/** Reads the examples of a set by the ids of their cases, which do not depend on the order of the lines. */
export function readSet(set: string): Map<string, SetExample> {
  const examples = new Map<string, SetExample>();
  const file = `runspan-sets/${set}.jsonl`;
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (line.trim() === '') continue;
    const example = ignoreErrors(() => JSON.parse(line.trim()) as SetExample);
    const { inputs, metadata, source_run_id: id = metadata?.name } = example ?? {};
    const hash = createHash('sha256').update(`${JSON.stringify(inputs)}`);
    const isId = typeof id === 'string' && /^(?!.*\.\.)[\w.-]{1,64}$/.test(id);
    const key = isId ? id : hash.digest('hex').slice(0, 12);
    if (example === undefined || !isFields(inputs) || examples.has(key))
      throw invalid(`line ${at + 1} of ${file} to be another example`);
    examples.set(key, example);
  }
  return examples;
}

function invalid(expected: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${expected}`);
}

export function setFixture(set: string, id: string): string {
  return `runspan-sets/${set}/${id}.trace.json`;
}
