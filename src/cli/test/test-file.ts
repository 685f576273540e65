import { inspect } from 'node:util';
import { defined, type Fields } from '../../payload/fields.ts';
import { type Fixture, masked } from '../../replay/fixture.ts';
import type { RecordedTrace } from '../../replay/fixture-of.ts';
import type { ExportedRun } from '../../replay/trace-calls.ts';
import { MODEL_TYPES } from '../../run/same-call.ts';
import type { ExpectedNode, ExpectedTrace } from '../../testing/expected-trace.ts';
import { forestOf, type Tree } from '../../testing/forest.ts';
import type { Project } from '../init/project.ts';
import type { Failure } from './failure.ts';

export type TestRunner = 'vitest' | 'jest' | 'node';

/** What a test file is written from. */
export interface TestSource {
  readonly trace: RecordedTrace;
  /** Undefined for a test that expects the recorded trace. */
  readonly failure: Failure | undefined;
  readonly fixture: Fixture;
  /** File name of the fixture, which is in the folder of the test. */
  readonly fixtureName: string;
}

/** The syntax of a project's test files. */
export interface TestSyntax {
  readonly runner: TestRunner;
  readonly extension: string;
  readonly isCommonJs: boolean;
  readonly isTypeScript: boolean;
  /** The command that runs a test file, without the file. */
  readonly command: string;
}

/** Returns the syntax for a project's test runner. A project without Vitest and Jest has `node:test`. */
export function syntaxOf(
  { dependencies, isTypeScript, isEsModule }: Project,
  given: TestRunner | undefined,
): TestSyntax {
  const known: TestRunner = 'vitest' in dependencies ? 'vitest' : 'jest' in dependencies ? 'jest' : 'node';
  const runner = given ?? known;
  if (runner === 'node')
    return { runner, extension: '.mjs', isCommonJs: false, isTypeScript: false, command: 'node --test' };
  return {
    runner,
    extension: isTypeScript ? '.ts' : '.js',
    isCommonJs: runner === 'jest' && !isEsModule,
    isTypeScript,
    command: runner === 'jest' ? 'npx jest' : 'npx vitest run',
  };
}

/** Time limit of a test in milliseconds, longer than that of a replay, whose error shows the program's output. */
const TIMEOUT = '70_000';

/** Returns the source text of a test. */
export function testText(source: TestSource, syntax: TestSyntax): string {
  const { trace, failure, fixture } = source;
  const { root, runs, entry } = trace;
  const name =
    failure === undefined ? `${root.name} makes the same calls` : `${failure.path.join(' > ')} does not fail`;
  return [
    ...imports(syntax),
    '',
    ...(entry === undefined ? gap(root, syntax) : []),
    `test(${literal(name)}, async () => {`,
    ...commentsOn(source).map((line) => `  // ${line.replace(/[\r\n\u2028\u2029]/g, ' ')}`),
    `  const trace = await replay(${fixturePath(source.fixtureName, syntax)}${entry === undefined ? ', { run }' : ''});`,
    ...(failure === undefined ? sameTrace(root, runs) : failedStep(failure, fixture, runs)),
    `}${syntax.runner === 'node' ? '' : `, ${TIMEOUT}`});`,
    '',
  ].join('\n');
}

function commentsOn({ trace: { root, runs }, failure, fixture }: TestSource): string[] {
  if (failure === undefined) return [`The expected runs are those of trace ${root.trace_id}.`];
  const failed = `In trace ${root.trace_id}, ${failure.run.name} failed with ${JSON.stringify(failure.error)}`;
  if (fixture.calls.some(({ isLive }) => isLive))
    return [failed, 'The failed step is a model call. This call and later ones are sent to the service.'];
  if (!hasModelCalls(failure.run, runs)) return [failed];
  return [failed, 'A call after the recorded ones stops the program, so that a failure after this call is not seen.'];
}

function hasModelCalls({ dotted_order: order }: ExportedRun, runs: readonly ExportedRun[]): boolean {
  return runs.some((run) => MODEL_TYPES.includes(run.run_type) && run.dotted_order.startsWith(`${order}.`));
}

function imports({ runner, isCommonJs, isTypeScript }: TestSyntax): string[] {
  const names = '{ expectRuns, replay }';
  if (isCommonJs && !isTypeScript) {
    return ["const { join } = require('node:path');", `const ${names} = require('runspan/testing');`];
  }
  const test = { vitest: 'vitest', node: 'node:test', jest: undefined }[runner];
  return [
    ...(isCommonJs ? ["import { join } from 'node:path';"] : []),
    ...(test === undefined ? [] : [`import { test } from '${test}';`]),
    `import ${names} from 'runspan/testing';`,
  ];
}

function fixturePath(name: string, { isCommonJs }: TestSyntax): string {
  return isCommonJs ? `join(__dirname, ${literal(name)})` : `new URL(${literal(`./${name}`)}, import.meta.url)`;
}

/** The part of the test that the user completes, because the trace does not tell how the program was started. */
function gap({ name, inputs }: ExportedRun, { isTypeScript }: TestSyntax): string[] {
  return [
    `const inputs = ${literal(masked(inputs))};`,
    `const run = async ()${isTypeScript ? ': Promise<unknown>' : ''} => {`,
    `  // TODO: call the function that has recorded ${JSON.stringify(name).replace(/[\u2028\u2029]/g, ' ')}. Import it here, for example:`,
    `  // const { answer } = await import('../src/answer.js');`,
    '  // return answer(inputs.input);',
    `  throw new Error(\`call the function with \${JSON.stringify(inputs)}\`);`,
    '};',
    '',
  ];
}

function failedStep({ path, run }: Failure, { inputs }: Fixture, runs: readonly ExportedRun[]): string[] {
  const [root = '', ...names] = path;
  const { name } = run;
  // The step may be one of several runs with this name, of which others may have failed without consequences.
  const earlier = runs.slice(0, runs.indexOf(run)).filter((one) => one.parent_run_id === run.parent_run_id);
  const last = [...earlier, run].filter((one) => one.name === name).map(() => name);
  const below = names.slice(0, -1).reduceRight<ExpectedTrace[]>((children, one) => [{ name: one, children }], last);
  const tree = nodeOf({ name: root, inputs: steady(inputs), children: names.length === 0 ? undefined : below });
  const isOne = runs.filter((one) => one.name === name && one.error !== undefined).length === 1;
  const failing = nodeOf({ name, inputs: isOne ? undefined : steady(run.inputs), error: /./ });
  return [
    `  expectRuns(trace).toMatchTrace(${literal(tree)}, { complete: false, ordered: false });`,
    `  expectRuns(trace).not.toHaveRun(${literal(failing)});`,
    // Another branch may have made a call that stopped the program.
    ...(hasModelCalls(run, runs) ? [] : [`  expectRuns(trace).not.toHaveRun(${literal({ name, open: true })});`]),
  ];
}

function sameTrace(root: ExportedRun, runs: readonly ExportedRun[]): string[] {
  const tree = forestOf(runs).find(({ run }) => run === root);
  if (tree === undefined) return [];
  const { name, ...nested } = expectedNode(tree);
  const expected = nodeOf({ name, inputs: steady(root.inputs), ...nested, outputs: steady(root.outputs) });
  return [
    `  expectRuns(trace).toMatchTrace(${literal(expected)}${hasConcurrent(tree) ? ', { ordered: false }' : ''});`,
  ];
}

function expectedNode({ run, children }: Tree<ExportedRun>): ExpectedNode {
  const inputs = run.run_type === 'tool' ? steady(run.inputs) : undefined;
  const nested = children.map((child) => {
    const node = expectedNode(child);
    return Object.keys(node).length === 1 ? (node.name as string) : node;
  });
  return nodeOf({ name: run.name, inputs, children: nested.length === 0 ? undefined : nested });
}

function nodeOf(fields: Fields): ExpectedNode {
  return defined(fields) as unknown as ExpectedNode;
}

/** Maximum length of a payload in a test file, in characters of JSON. */
const PAYLOAD_MAX = 2_000;
/** Matches ids and times, which differ in each execution. */
const UNSTEADY = /[\da-f]{8}-[\da-f]{4}-|\d{4}-\d\d-\d\dT\d\d:/i;

function steady<Payload>(payload: Payload): Payload | undefined {
  const shown = masked(payload) as Payload;
  const text = JSON.stringify(shown) ?? '';
  return text.length > PAYLOAD_MAX || text === '{}' || UNSTEADY.test(text) ? undefined : shown;
}

/** Whether a run has started before its previous sibling has ended. */
function hasConcurrent({ children }: Tree<ExportedRun>): boolean {
  return children.some((child, at) => {
    const previous = children[at - 1]?.run;
    return (previous !== undefined && child.run.start_time < (previous.end_time ?? '')) || hasConcurrent(child);
  });
}

/** Returns the source text of a value in a statement that is indented by two spaces. */
function literal(value: unknown): string {
  const text = inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, breakLength: 80 });
  return text.replaceAll('\n', '\n  ');
}
