import { inspect } from 'node:util';
import { defined } from '../../payload/fields.ts';
import type { RecordedTrace } from '../../replay/fixture-of.ts';
import type { ExportedRun } from '../../replay/trace-calls.ts';
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
  /** Number of the first model call that must be sent, because the recorded one has failed. */
  readonly liveFrom: number | undefined;
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

/** Time limit of a test in milliseconds. Vitest and Jest would stop it after 5 seconds. */
const TIMEOUT = '60_000';

export function testText(source: TestSource, syntax: TestSyntax): string {
  const { trace, failure } = source;
  const { root, entry } = trace;
  const name =
    failure === undefined ? `${root.name} makes the same calls` : `${failure.path.join(' > ')} does not fail`;
  const about =
    failure === undefined
      ? `The expected runs are those of trace ${root.trace_id}.`
      : `In trace ${root.trace_id}, ${failure.run.name} failed with ${JSON.stringify(failure.error)}`;
  const options = defined({ liveFrom: source.liveFrom, run: entry === undefined ? 'run' : undefined });
  const lines = [
    `  // ${about.replace(/[\r\n\u2028\u2029]/g, ' ')}`,
    ...(source.liveFrom === undefined
      ? []
      : ['  // The failed step is a model call, so that this call and later ones are sent to the service.']),
    `  const trace = await replay(${fixturePath(source.fixtureName, syntax)}${optionsText(options)});`,
    ...(failure === undefined ? sameTrace(root, trace.runs) : failedStep(failure)),
  ];
  const isLimited = syntax.runner !== 'node';
  return [
    ...imports(syntax),
    '',
    ...(entry === undefined ? gap(root, syntax) : []),
    `test(${literal(name)}, async () => {`,
    ...lines,
    `}${isLimited ? `, ${TIMEOUT}` : ''});`,
    '',
  ].join('\n');
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

function optionsText(options: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(options).map(([key, value]) => (key === value ? key : `${key}: ${value}`));
  return parts.length === 0 ? '' : `, { ${parts.join(', ')} }`;
}

/** The part of the test that the user completes, because the trace does not tell how the program was started. */
function gap({ name, inputs }: ExportedRun, { isTypeScript }: TestSyntax): string[] {
  return [
    `// TODO: import the function that has recorded ${JSON.stringify(name)}, and call it here.`,
    `const inputs = ${literal(inputs)};`,
    `const run = async ()${isTypeScript ? ': Promise<unknown>' : ''} => {`,
    `  throw new Error(\`call the function with \${JSON.stringify(inputs)}\`);`,
    '};',
    '',
  ];
}

function failedStep({ path, run: { name } }: Failure): string[] {
  const tree = path.reduceRight<ExpectedTrace | undefined>(
    (child, one) => (child === undefined ? one : { name: one, children: [child] }),
    undefined,
  );
  return [
    `  expectRuns(trace).toMatchTrace(${literal(tree)}, { complete: false });`,
    `  expectRuns(trace).not.toHaveRun({ name: ${literal(name)}, error: /./ });`,
  ];
}

function sameTrace(root: ExportedRun, runs: readonly ExportedRun[]): string[] {
  const [tree] = forestOf(runs).filter(({ run }) => run === root);
  if (tree === undefined) return [];
  const outputs = steady(root.outputs);
  const expected = { ...expectedNode(tree), ...(outputs && { outputs }) };
  const text = literal(expected).replaceAll('\n', '\n  ');
  return [`  expectRuns(trace).toMatchTrace(${text}${hasConcurrent(tree) ? ', { ordered: false }' : ''});`];
}

function expectedNode({ run, children }: Tree<ExportedRun>): ExpectedNode {
  const inputs = run.run_type === 'tool' ? steady(run.inputs) : undefined;
  const nested = children.map((child) => {
    const node = expectedNode(child);
    return Object.keys(node).length === 1 ? (node.name as string) : node;
  });
  return defined({ name: run.name, inputs, children: nested.length === 0 ? undefined : nested }) as ExpectedNode;
}

/** Maximum length of a payload in a test file, in characters of JSON. */
const PAYLOAD_MAX = 2_000;
/** Matches ids and times, which differ in each execution. */
const UNSTEADY = /[\da-f]{8}-[\da-f]{4}-|\d{4}-\d\d-\d\dT\d\d:/i;

function steady<Payload>(payload: Payload): Payload | undefined {
  const text = JSON.stringify(payload) ?? '';
  return text.length > PAYLOAD_MAX || UNSTEADY.test(text) ? undefined : payload;
}

/** Whether a run has started before its previous sibling has ended. */
function hasConcurrent({ children }: Tree<ExportedRun>): boolean {
  return children.some((child, at) => {
    const previous = children[at - 1]?.run;
    return (previous !== undefined && child.run.start_time < (previous.end_time ?? '')) || hasConcurrent(child);
  });
}

function literal(value: unknown): string {
  return inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, breakLength: 100, sorted: false });
}
