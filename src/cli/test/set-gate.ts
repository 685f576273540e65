import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathTo } from '../../base/forest.ts';
import { ignoreErrors } from '../../base/guard.ts';
import { messageOf, visible } from '../../base/text.ts';
import { devVariable, environmentWith } from '../../config/environment.ts';
import { FORMAT, VERSION } from '../../receiver/api/export/trace-export.ts';
import type { RunOutline } from '../../receiver/domain/run-view.ts';
import { MemoryStore } from '../../receiver/store/memory-store.ts';
import { DEFAULT_SCOPE } from '../../receiver/store/store.ts';
import { fixtureText } from '../../replay/fixture.ts';
import { fixtureOf, recordedTrace } from '../../replay/fixture-of.ts';
import { type CaseResult, cellOf, isBad, readSet, resultIn, setFixture } from '../../replay/run-set.ts';
import type { ExportedRun } from '../../replay/trace-calls.ts';
import { isRunId } from '../../run/ids.ts';
import type { RunRecord } from '../../run/record.ts';
import { type CommandContext, UsageError } from '../command-line.ts';
import { runChild } from '../dev/child.ts';
import { findSource, type SourceOptions, withSource } from '../query/run-source.ts';
import type { RunSource } from '../stores.ts';
import { counted } from '../terminal-text.ts';
import { sumTexts } from '../tree.ts';
import { setTestText, type TestSyntax } from './test-file.ts';

/** Writes what the test of a set lacks, runs it, and prints a table of the cases. `folder` is that of the test. */
export async function gate(
  set: string,
  options: SourceOptions & { readonly live?: boolean; readonly baseline?: string },
  { folder, syntax }: { readonly folder: string; readonly syntax: TestSyntax },
  { stdout, stderr, endAs }: CommandContext,
): Promise<void> {
  const { live: isLive = false, baseline } = options;
  const log = (line: string): void => void stderr.write(`runspan: ${visible(line)}\n`);
  const tell = (error: unknown): undefined => void log(messageOf(error));
  const ids = [...readSet(set).keys()];
  const before = baseline === undefined ? undefined : baselineIn(baseline);
  if (before !== undefined && !ids.some((id) => before.has(id)))
    throw new UsageError(`${visible(`${baseline}`)} has no case of the set ${set}`);
  const hasFixture = (id: string): boolean => existsSync(setFixture(set, id));
  if (!ids.every(hasFixture))
    await withSource(options, async (source) => {
      for (const id of ids) if (!hasFixture(id)) log(await writeFixture(set, id, source));
    }).catch(tell);
  const file = relative(process.cwd(), join(folder, `${set}.set.test${syntax.extension}`));
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, setTestText(set, syntax));
    log(`wrote ${file}; complete the TODO in it, and run the command again`);
    return endAs(1);
  }
  const { ending, reports } = await tested(set, [...syntax.command.split(' '), file], isLive);
  const end = `the test ended with ${ending}`;
  const results = new Map(
    ids.map((id): [string, CaseResult | undefined] => {
      const [report, ...others] = reports.filter(([, one]) => one === id);
      if (report !== undefined && others.length === 0) return [id, report[2]];
      const problem = report === undefined ? end : 'the test runs the set more than once';
      return [id, isLive || hasFixture(id) ? { problem, scores: [] } : undefined];
    }),
  );
  const address = await stored(results, options).catch(tell);
  const { table, isGood } = await tableOf(results, before, address);
  stdout.write(table);
  if (ending !== 0) log(end);
  if (ending !== 0 || !isGood) endAs(1);
}

/** Writes the recorded model calls of a run and the runs below it. Returns a line about it. */
async function writeFixture(set: string, id: string, source: RunSource): Promise<string> {
  const run = isRunId(id) ? await source.details(id) : undefined;
  const text = run && (await source.exported(run.trace_id));
  if (text === undefined) return `${id} runs only with --live, because its run is not stored`;
  const { runs } = JSON.parse(text) as { runs: ExportedRun[] };
  const byId = new Map(runs.map((one) => [one.id, one]));
  const below = runs.filter((one) => pathTo(one, byId).some((above) => above.id === id));
  const { fixture, missing } = fixtureOf(recordedTrace(below), 'strict');
  if (missing.length > 0) return `${id} runs only with --live: ${missing.join('; ')}`;
  const file = setFixture(set, id);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, fixtureText(fixture), { flag: 'wx' });
  return `wrote ${file}`;
}

/** Runs a test, whose output goes to standard error, and returns the reports of the cases that have ended. */
async function tested(set: string, command: readonly string[], isLive: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'runspan-set-'));
  try {
    const file = join(folder, 'report.jsonl');
    writeFileSync(file, '');
    const env = environmentWith(devVariable({ setReport: file, setLive: isLive }));
    const ending = await runChild(command as [string], env, 'stderr');
    // If the test was killed, the last line may be incomplete.
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    const reports = lines.map((line) => JSON.parse(line) as [set: string, id: string, CaseResult]);
    return { ending, reports: reports.filter(([name]) => name === set) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Results by the ids of the cases. Undefined for a case that has not run. */
type Results = ReadonlyMap<string, CaseResult | undefined>;

/** Stores runs and scores in a receiver. Returns its address, or undefined if there is none. */
async function stored(results: Results, options: SourceOptions): Promise<string | undefined> {
  const receiver = await findSource(options).catch(() => '');
  const cases = [...results.values()].flatMap((result) => result ?? []);
  const runs = cases.flatMap((result) => result.runs ?? []);
  if (typeof receiver === 'string' || runs.length === 0) return undefined;
  const feedback = cases.flatMap(({ scores, runs: [root] = [] }) =>
    scores.map(({ name, value }) => ({ run_id: root?.id, key: name, score: value })),
  );
  await receiver.import(JSON.stringify({ format: FORMAT, version: VERSION, feedback, runs }));
  return receiver.address;
}

const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;

/** Returns a table in Markdown with a line of totals, and whether a case was judged and none is worse. */
async function tableOf(results: Results, before?: Results, address?: string) {
  const all: RunOutline[] = [];
  const store = new MemoryStore();
  let [judged, worse] = [0, 0];
  let table = row('case', 'before', 'now', 'tokens', 'cost', 'trace') + row(...Array<string>(6).fill('---'));
  for (const [id, result] of results) {
    const was = before?.has(id) ? cellOf(before.get(id)) : before && 'new';
    const isWorse = before?.has(id) ? isLower(result, before.get(id)) : isBad(result);
    const { runs = [], scores = [] } = result ?? {};
    const outline = await outlineOf(store, runs);
    const [tokens = '–', cost = '–'] = sumTexts(outline);
    const link = address && runs[0] ? `[trace](${address}/?trace=${runs[0].trace_id})` : '–';
    table += row(`\`${id}\``, was ?? '–', `${isWorse ? '❌ ' : ''}${cellOf(result)}`, tokens, cost, link);
    judged += Number(scores.length > 0);
    worse += Number(isWorse);
    all.push(...outline);
  }
  for (const [id, was] of before ?? [])
    if (!results.has(id)) table += row(`\`${id}\``, cellOf(was), 'gone', '–', '–', '–');
  const counts = [counted(results.size, 'case'), `${judged} judged`, `${worse} ${before ? 'worse' : 'failed'}`];
  table += `\n${[...counts, ...sumTexts(all)].join(', ')}\n`;
  return { table, isGood: judged > 0 && worse === 0 };
}

/** Whether a case fails or is not run that did not fail, or a score has fallen or is missing. `true` counts as 1, `false` as 0. */
function isLower(now: CaseResult | undefined, was: CaseResult | undefined): boolean {
  if (was === undefined || was.problem !== undefined) return false;
  if (now === undefined || now.problem !== undefined) return true;
  const scores = new Map(now.scores.map(({ name, value }) => [name, value]));
  return was.scores.some(({ name, value }) => Number(scores.get(name) ?? -Infinity) < Number(value));
}

/** Reads the results in a table that this command has printed, by the ids of the cases. Throws if there is none. */
function baselineIn(file: string): Results {
  const lines = (ignoreErrors(() => readFileSync(file, 'utf8')) ?? '').split(/\r?\n/);
  const rows = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  const cases = rows.filter(([, id = '', , now]) => /^`.+`$/.test(id) && now !== 'gone');
  const results = new Map(cases.map(([, id = '', , now = '']) => [id.slice(1, -1), resultIn(now)]));
  if (results.size === 0) throw new UsageError(`${visible(file)} contains no table of runspan test --set`);
  return results;
}

/** Returns the runs of a case as a receiver shows them. */
async function outlineOf(store: MemoryStore, runs: readonly RunRecord[]): Promise<RunOutline[]> {
  const operations = runs.map(({ id, ...fields }) => ({ kind: 'post', id, fields, attachments: [] }) as const);
  await store.apply(DEFAULT_SCOPE, operations);
  const texts = await store.outline(DEFAULT_SCOPE, runs[0]?.trace_id ?? '');
  return texts.map((text) => JSON.parse(text));
}
