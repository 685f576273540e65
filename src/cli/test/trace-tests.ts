import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import { fieldsOf, parsedJson } from '../../payload/fields.ts';
import { MASK } from '../../payload/redaction/redact.ts';
import type { RunOutline } from '../../receiver/domain/run-view.ts';
import { derivedTools } from '../../receiver/domain/trace/derived-tools.ts';
import { type Entry, type Fixture, fixtureText, type RecordedCall } from '../../replay/fixture.ts';
import { fixtureOf, type RecordedTrace, recordedTrace } from '../../replay/fixture-of.ts';
import { packageFolder } from '../../replay/own-process.ts';
import { type ExportedRun, isModelCall } from '../../replay/trace-calls.ts';
import { type CommandContext, CommandFailure, type OptionsOf, type Output, UsageError } from '../command-line.ts';
import { type Project, readProject } from '../init/project.ts';
import { withSource, withSourceOptions } from '../query/run-source.ts';
import { completeId, idArgument } from '../query/show.ts';
import { checkedFilter, startTime } from '../query/traces.ts';
import type { RunSource } from '../stores.ts';
import { counted, timeText } from '../terminal-text.ts';
import { type Failure, failureKey, failureOfTrace } from './failure.ts';
import { gate } from './set-gate.ts';
import { syntaxOf, testText } from './test-file.ts';

const HELP = `
The fixture contains the model calls of the trace. In the test, the program is started again, its
model calls are answered from the fixture, and its tools run for real. Record the trace with
runspan dev, which also records how the program was started.

The test of a failed trace expects that the failed step no longer fails. Another test expects the
same calls and the same answer. A test file that exists is kept, and only its fixture is written.

With --set, the examples are those of runspan-sets/<name>.jsonl in this folder.

Exit code:
  0 on success; 1 if a model call of the trace cannot be replayed, or the trace is unknown; 1 with
  --set if a case is worse, or nothing was judged; 2 for invalid arguments`;

export function define(command: Command, context: CommandContext): void {
  const { stdout, stderr, endAs } = context;
  withSourceOptions(withOptions(command))
    .description('Writes a test from a recorded trace. Without an id, uses the latest trace.')
    .argument('[id]', "id of a trace, or the start or end of a recent trace's id", idArgument)
    .addHelpText('after', HELP)
    .action(async (id, options) => {
      const isOfSet = options.set !== undefined || (options.live ?? options.baseline) === undefined;
      if (!isOfSet || [options.failed, id, options.set].filter(Boolean).length > 1)
        throw new UsageError('expected an id, --failed or --set, and --live and --baseline only with --set');
      const project = await readProject(packageFolder(process.cwd()));
      if (options.set !== undefined) {
        const folder = resolve(project.folder, options.out ?? testFolder(project.folder));
        return gate(options.set, options, { folder, syntax: syntaxOf(project, options.runner) }, context);
      }
      await withSource(options, async (source) => {
        const traces = options.failed
          ? await failedTraces(source, options.since, project, stderr)
          : [await traceOf(source, id)];
        if (traces.length === 0) stdout.write('no failed traces\n');
        for (const trace of traces) {
          try {
            const failedTools = failedToolsIn(await source.outline(trace.root.trace_id));
            stdout.write(writeTest(trace, failedTools, options, project));
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
    .option('--name <name>', 'name of the files (default: the names of the root run and the failed step)', fileName)
    .option('--failed', 'write one test for each distinct failure of recent traces')
    .addOption(
      new Option('--since <time>', 'earliest start of traces for --failed, for example 15m, 2h or 7d')
        .argParser(startTime)
        .implies({ failed: true }),
    )
    .option('--set <name>', 'run the test of a set of examples, and print a table of its cases', fileName)
    .option('--live', 'with --set: send the model calls instead of answering them from the fixtures')
    .option('--baseline <file>', 'with --set: file with an earlier table, below which no score may fall');
}

function fileName(text: string): string {
  if (/^(?!\.)(?!.*\.\.)[\p{L}\p{N}._-]+$/u.test(text)) return text;
  throw new InvalidArgumentError('Expected letters, digits, dots, hyphens and underscores.');
}

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
async function failedTraces(source: RunSource, since: string | undefined, project: Project, stderr: Output) {
  const filter = checkedFilter(`any(status:error)${since === undefined ? '' : ` since:${since}`}`) ?? '';
  const { items, next } = await source.traces({ filter, limit: TRACES_MAX });
  const found = new Map<string, RecordedTrace>();
  let others = 0;
  for (const { trace_id: id } of items) {
    const trace = await readTrace(source, id);
    const failure = trace && failureOfTrace(trace);
    const key = failure && failureKey(failure);
    if (trace === undefined || key === undefined || found.has(key)) continue;
    if (trace.entry === undefined || isIn(project, trace.entry)) found.set(key, trace);
    else others += 1;
  }
  if (others > 0) stderr.write(`runspan: ${counted(others, 'failed trace')} of other packages left out\n`);
  if (next !== undefined) stderr.write(`runspan: only the latest ${TRACES_MAX} failed traces are read; use --since\n`);
  return [...found.values()];
}

/** Returns a sentence for each failed tool that only the messages tell of. A test cannot expect anything of its run. */
function failedToolsIn(outline: readonly RunOutline[]): string[] {
  const failed = derivedTools(outline).filter(({ is_error }) => is_error);
  return failed.map(({ name }) => `${name} failed, as the messages tell`);
}

function writeTest(
  trace: RecordedTrace,
  failedTools: readonly string[],
  { mode: given, runner, out, name }: OptionsOf<typeof withOptions>,
  project: Project,
): string {
  const { root, request } = trace;
  const failure = given === 'strict' ? undefined : failureOfTrace(trace);
  const { fixture, missing } = fixtureOf(trace, given ?? (failure === undefined ? 'strict' : 'failed'), failure?.run);
  const { calls, entry } = fixture;
  const reasons = [...missing];
  if (calls.length === 0 && missing.length === 0 && failure === undefined) reasons.push('it has no model calls');
  if (entry !== undefined && !isIn(project, entry))
    reasons.push(`its program, ${entry.script}, is in another package; run the command there`);
  if (root.extra?.metadata?.['http.request.method'] !== undefined && request === undefined) {
    reasons.push(
      'the body of its HTTP request is not recorded; record it with runspan dev --with-body, as JSON of at most 1 MiB',
    );
  }
  if (reasons.length > 0) throw new CommandFailure(`trace ${root.trace_id} cannot be replayed: ${reasons.join('; ')}`);
  const folder = resolve(project.folder, out ?? testFolder(project.folder));
  const base = join(folder, name ?? unusedName(folder, slugOf(root.name, failure), fixture));
  mkdirSync(folder, { recursive: true });
  const lines = [`from trace ${root.trace_id}, ${root.name}, ${timeText(root.start_time)}`];
  writeFileSync(`${base}.trace.json`, fixtureText(fixture));
  lines.push(`wrote ${shownPath(`${base}.trace.json`)} with ${counted(calls.length, 'model call')}`);
  const syntax = syntaxOf(project, runner);
  const testFile = `${base}.test${syntax.extension}`;
  const isKept = existsSync(testFile);
  if (!isKept)
    writeFileSync(
      testFile,
      testText({ trace, failure, failedTools, fixture, fixtureName: basename(`${base}.trace.json`) }, syntax),
    );
  lines.push(`${isKept ? 'kept' : 'wrote'} ${shownPath(testFile)}`);
  lines.push(
    ...failedTools.map((text) => `note: ${text}`),
    ...notesOn(fixture, trace),
    `run it with: ${syntax.command} ${shownPath(testFile)}`,
  );
  return lines.map((line) => `${visible(line)}\n`).join('');
}

function isIn({ folder, name }: Project, { script, package: packageName = name }: Entry): boolean {
  return packageName === name && existsSync(join(folder, script));
}

/** What the user has to know of a test, or to do for it. */
function notesOn({ entry, calls, request }: Fixture, { root }: RecordedTrace): string[] {
  const isMasked = (value: unknown): boolean => JSON.stringify(value ?? null).includes(MASK);
  const notes: [isTrue: boolean, text: string][] = [
    [entry === undefined, 'complete the TODO in the test, because the trace does not tell how the program was started'],
    [
      isMasked(entry?.args),
      'an argument is masked; let the program read it from a variable, and pass the variable as env',
    ],
    [isMasked(request), 'a value in the HTTP request is masked, and the program gets the mask'],
    [isMasked(calls.map(({ response }) => response)), 'a value in an answer is masked, and the program gets the mask'],
    [calls.some(({ isLive }) => isLive), 'the failed step is a model call, so the test sends this call to the service'],
    [
      isModelCall(root),
      'the trace is a single model call; wrap the agent and its tools with traceable, so that the test covers them',
    ],
    [
      hasSameRequests(calls),
      'two calls have the same request and different answers; if they are concurrent, a replay may swap them',
    ],
  ];
  return notes.flatMap(([isTrue, text]) => (isTrue ? `note: ${text}` : []));
}

function hasSameRequests(calls: readonly RecordedCall[]): boolean {
  const answers = new Map<string, string>();
  return calls.some(({ call, request, response, events }) => {
    const [key, text] = [JSON.stringify([call, request]), JSON.stringify([response, events])];
    const isOther = answers.has(key) && answers.get(key) !== text;
    answers.set(key, text);
    return isOther;
  });
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

/** Returns a name whose files do not exist, or those of the same trace. */
function unusedName(folder: string, name: string, { trace }: Fixture): string {
  for (let number = 1; ; number += 1) {
    const unused = number === 1 ? name : `${name}-${number}`;
    const file = join(folder, `${unused}.trace.json`);
    if (!existsSync(file) || fieldsOf(parsedJson(readFileSync(file, 'utf8'))).trace === trace) return unused;
  }
}

function shownPath(file: string): string {
  return relative(process.cwd(), file);
}
