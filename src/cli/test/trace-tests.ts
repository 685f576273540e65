import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import { MASK } from '../../payload/redaction/redact.ts';
import type { ReplayMode } from '../../replay/fixture.ts';
import { fixtureOf, fixtureText, type RecordedTrace, recordedTrace } from '../../replay/fixture-of.ts';
import { callsOf, type ExportedRun, MODEL_TYPES } from '../../replay/trace-calls.ts';
import { type CommandContext, CommandFailure, type OptionsOf, type Output, UsageError } from '../command-line.ts';
import { type Project, readProject } from '../init/project.ts';
import { withSource, withSourceOptions } from '../query/run-source.ts';
import { completeId, idOf } from '../query/show.ts';
import { checkedFilter, startTime } from '../query/traces.ts';
import type { RunSource } from '../stores.ts';
import { counted } from '../terminal-text.ts';
import { type Failure, failureOf, keyOf } from './failure.ts';
import { syntaxOf, testText } from './test-file.ts';

const HELP = `
The fixture contains the model calls of the trace. In the test, the program is started again, its
model calls are answered from the fixture, and its tools run for real. Record the trace with
runspan dev, which also records how the program was started.

The test of a failed trace expects that the failed step no longer fails. Another test expects the
same calls and the same answer. A test file that exists is kept, and only its fixture is written.

Exit code:
  0 on success; 1 if a model call of the trace cannot be replayed, or the trace is unknown; 2 for
  invalid arguments`;

export function define(command: Command, { stdout, stderr, endAs }: CommandContext): void {
  withSourceOptions(withOptions(command))
    .description('Writes a test from a recorded trace. Without an id, uses the latest trace.')
    .argument('[id]', "id of a trace, or the start or end of a recent trace's id", idOf)
    .addHelpText('after', HELP)
    .action(async (id, options) => {
      if (options.failed && id !== undefined) throw new UsageError('expected an id or --failed, got both');
      const project = await readProject(process.cwd());
      await withSource(options, async (source) => {
        const traces = options.failed ? await failedTraces(source, options.since, stderr) : [await traceOf(source, id)];
        if (traces.length === 0) stdout.write('no failed traces\n');
        const taken = new Set<string>();
        for (const trace of traces) {
          try {
            stdout.write(writeTest(trace, options, project, taken));
          } catch (error) {
            // The other traces are still written.
            if (!(error instanceof CommandFailure) || traces.length === 1) throw error;
            stdout.write(`${error.message}\n`);
            endAs(1);
          }
        }
      });
    });
}

function withOptions(command: Command) {
  return command
    .addOption(new Option('--mode <mode>', 'strict or failed (default: failed for a failed trace)').choices(MODES))
    .addOption(
      new Option('--runner <name>', 'test runner (default: the one in package.json, otherwise node)').choices(RUNNERS),
    )
    .option('--out <folder>', 'folder for the files (default: test, tests or __tests__)')
    .option('--name <name>', 'name of the files (default: the names of the root run and the failed step)')
    .option('--failed', 'write one test for each distinct failure of recent traces')
    .addOption(
      new Option('--since <time>', 'earliest start of traces for --failed, for example 15m, 2h or 7d')
        .argParser(startTime)
        .implies({ failed: true }),
    );
}

type TestOptions = OptionsOf<typeof withOptions>;

const MODES = ['strict', 'failed'] as const;
const RUNNERS = ['vitest', 'jest', 'node'] as const;

async function traceOf(source: RunSource, id: string | undefined): Promise<RecordedTrace> {
  const traceId = await completeId(source, id);
  const trace = await readTrace(source, traceId);
  if (trace === undefined) throw new CommandFailure(`no trace has the id ${traceId}`);
  return trace;
}

async function readTrace(source: RunSource, traceId: string): Promise<RecordedTrace | undefined> {
  const text = await source.exported(traceId);
  return text === undefined ? undefined : recordedTrace((JSON.parse(text) as { runs: ExportedRun[] }).runs);
}

/** Maximum number of traces that are searched for failures. */
const TRACES_MAX = 1_000;

/** Returns the latest trace of each distinct failure. */
async function failedTraces(source: RunSource, since: string | undefined, stderr: Output): Promise<RecordedTrace[]> {
  const filter = checkedFilter(`any(status:error)${since === undefined ? '' : ` since:${since}`}`) ?? '';
  const { items, next } = await source.traces({ filter, limit: TRACES_MAX });
  const found = new Map<string, RecordedTrace>();
  for (const { trace_id: id } of items) {
    const trace = await readTrace(source, id);
    const failure = trace && failureOf(trace);
    if (failure !== undefined && !found.has(keyOf(failure))) found.set(keyOf(failure), trace as RecordedTrace);
  }
  if (next !== undefined) stderr.write(`runspan: only the latest ${TRACES_MAX} failed traces are read; use --since\n`);
  return [...found.values()];
}

/** Writes the fixture and the test of a trace, and returns what was written. `taken` contains the names in use. */
function writeTest(
  trace: RecordedTrace,
  { mode: given, runner, out, name }: TestOptions,
  project: Project,
  taken: Set<string>,
): string {
  const { root, runs, request } = trace;
  const failure = given === 'strict' ? undefined : failureOf(trace);
  const mode: ReplayMode = given ?? (failure === undefined ? 'strict' : 'failed');
  const { fixture, missing } = fixtureOf(trace, mode);
  const { calls, entry } = fixture;
  const reasons = [...missing];
  if (calls.length === 0 && missing.length === 0 && failure === undefined) reasons.push('it has no model calls');
  if (entry !== undefined && !existsSync(join(project.folder, entry.script)))
    reasons.push(`${entry.script} is not in this folder, so run the command in the package of the program`);
  if (reasons.length > 0) throw new CommandFailure(`trace ${root.trace_id} cannot be replayed: ${reasons.join('; ')}`);
  const folder = resolve(project.folder, out ?? testFolder(project.folder));
  const base = unusedName(name ?? slugOf(root.name, failure), taken);
  const fixtureFile = join(folder, `${base}.trace.json`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(fixtureFile, fixtureText(fixture));
  const shown = (file: string): string => visible(relative(process.cwd(), file));
  const wrote = `wrote ${shown(fixtureFile)} with ${counted(calls.length, 'model call')}\n`;
  if (root.extra?.metadata?.['http.request.method'] !== undefined && request === undefined) {
    return `${wrote}wrote no test, because the body of the request is not recorded; record it with runspan dev --with-body\n`;
  }
  const syntax = syntaxOf(project, runner);
  const testFile = join(folder, `${base}.test${syntax.extension}`);
  const isKept = existsSync(testFile);
  const source = { trace, failure, liveFrom: liveFromOf(failure, runs), fixtureName: basename(fixtureFile) };
  if (!isKept) writeFileSync(testFile, testText(source, syntax));
  const hidden = entry?.args.some((argument) => argument.includes(MASK))
    ? 'an argument of the program is masked in the fixture; write its value there, or let the program read it from a variable\n'
    : '';
  const todo =
    entry === undefined ? 'complete the TODO in the test, because the trace was not recorded with runspan dev\n' : '';
  return `${wrote}${isKept ? 'kept' : 'wrote'} ${shown(testFile)}\n${hidden}${todo}run it with: ${syntax.command} ${shown(testFile)}\n`;
}

/** If the failed step is a model call, returns the number of this call. */
function liveFromOf(failure: Failure | undefined, runs: readonly ExportedRun[]): number | undefined {
  if (failure === undefined || !MODEL_TYPES.has(failure.run.run_type)) return undefined;
  const at = runs.indexOf(failure.run);
  return callsOf(runs.slice(0, at)).calls.length + 1;
}

function testFolder(folder: string): string {
  return ['test', 'tests', '__tests__'].find((name) => existsSync(join(folder, name))) ?? 'test';
}

/** Returns a file name, for example `agent-search`. */
function slugOf(root: string, failure: Failure | undefined): string {
  const step = failure === undefined || failure.path.length === 1 ? '' : `-${failure.path.at(-1)}`;
  const slug = `${root}${step}`.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-');
  return slug.replace(/^-|-$/g, '').slice(0, 60) || 'trace';
}

function unusedName(name: string, taken: Set<string>): string {
  let unused = name;
  for (let number = 2; taken.has(unused); number += 1) unused = `${name}-${number}`;
  taken.add(unused);
  return unused;
}
