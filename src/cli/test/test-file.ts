import { inspect } from 'node:util';
import { depthFirst, forestOf, type Tree } from '../../base/forest.ts';
import { type Fixture, masked } from '../../replay/fixture.ts';
import type { RecordedTrace } from '../../replay/fixture-of.ts';
import { type ExportedRun, isModelCall } from '../../replay/trace-calls.ts';
import { outlineOf } from '../../testing/snapshot.ts';
import type { Project } from '../init/project.ts';
import type { Failure } from './failure.ts';

export type TestRunner = 'vitest' | 'jest' | 'node';

/** What a test file is written from. */
export interface TestSource {
  readonly trace: RecordedTrace;
  /** Undefined for a test that expects the recorded trace. */
  readonly failure: Failure | undefined;
  /** Sentences about tools that failed, and that no run records. */
  readonly failedTools: readonly string[];
  readonly fixture: Fixture;
  /** File name of the fixture, which is in the folder of the test. */
  readonly fixtureName: string;
}

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
    ...[...commentsOn(source), ...source.failedTools].map((line) => `  // ${line.replace(/[\r\n\u2028\u2029]/g, ' ')}`),
    `  const trace = await replay(${fixturePath(source.fixtureName, syntax)}${entry === undefined ? ', { run }' : ''});`,
    ...(failure === undefined ? sameTrace(root, runs, syntax) : failedStep(failure, fixture, runs)),
    `}${syntax.runner === 'node' ? '' : `, ${TIMEOUT}`});`,
    '',
  ].join('\n');
}

/** Returns the test of a set. No trace tells which function has recorded the runs, so that the user completes it. */
export function setTestText(set: string, { runner, isCommonJs, isTypeScript }: TestSyntax): string {
  const isScript = isCommonJs && !isTypeScript;
  const imported = (names: string, from: string): string =>
    isScript ? `const ${names} = require('${from}');` : `import ${names} from '${from}';`;
  const path = `../src/answer.${isTypeScript ? 'ts' : 'js'}`;
  return `${imported('{ isDeepStrictEqual }', 'node:util')}
${runner === 'jest' ? '' : `${imported('{ test }', runner === 'node' ? 'node:test' : runner)}\n`}${imported('{ runSet }', 'runspan/testing')}

test('the set ${set}', () => runSet('${set}', {
  run: async (inputs) => {
    // TODO: call the function that has recorded the runs. Import it here, for example:
    // const { answer } = ${isScript ? 'require' : 'await import'}('${path}');
    // return answer(inputs.input);
    throw new Error('complete the TODO in this test');
  },
  scores: {
    same: ({ outputs, example }) => isDeepStrictEqual(outputs, example.outputs),
  },
})${runner === 'node' ? '' : ', 120_000'});
`;
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
  return runs.some((run) => isModelCall(run) && run.dotted_order.startsWith(`${order}.`));
}

function imports({ runner, isCommonJs, isTypeScript }: TestSyntax): string[] {
  const names = '{ outlineOf, replay }';
  if (isCommonJs && !isTypeScript) {
    return [
      "const { strict: assert } = require('node:assert');",
      "const { join } = require('node:path');",
      `const ${names} = require('runspan/testing');`,
    ];
  }
  const test = { vitest: 'vitest', node: 'node:test', jest: undefined }[runner];
  return [
    "import { strict as assert } from 'node:assert';",
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

function failedStep({ run }: Failure, { inputs }: Fixture, runs: readonly ExportedRun[]): string[] {
  const named = runs.filter(({ name }) => name === run.name);
  // The step may be one of several runs with this name, of which others may have failed without consequences.
  const earlier = named.indexOf(run);
  const failing = named.filter(({ error }) => error !== undefined).length === 1 ? undefined : steady(run.inputs);
  const [fields, isOther] =
    failing === undefined
      ? ['error', '']
      : ['error, inputs', ` || JSON.stringify(inputs) !== ${literal(JSON.stringify(failing))}`];
  return [
    ...sameValue('inputs', inputs),
    `  const steps = trace.runs.filter(({ name }) => name === ${literal(run.name)});`,
    `  assert.ok(steps.length > ${earlier}, outlineOf(trace));`,
    `  assert.ok(steps.every(({ ${fields} }) => error === undefined${isOther}), outlineOf(trace));`,
    // Another branch may have made a call that stopped the program.
    ...(hasModelCalls(run, runs)
      ? []
      : ['  assert.ok(steps.every(({ end_time }) => end_time !== undefined), outlineOf(trace));']),
  ];
}

function sameTrace(root: ExportedRun, runs: readonly ExportedRun[], syntax: TestSyntax): string[] {
  const tree = forestOf(runs).find(({ run }) => run === root);
  if (tree === undefined) return [];
  const all = [...depthFirst([tree])].map(([{ run }]) => run);
  const isOrdered = !hasConcurrent(tree);
  const outline = outlineOf(all, { ordered: isOrdered });
  const given = `outlineOf(trace${isOrdered ? '' : ', { ordered: false }'}).split('\\n')`;
  return [
    ...(UNSTEADY.test(outline) ? sameNames(all) : [`  assert.deepEqual(${given}, ${literal(outline.split('\n'))});`]),
    ...sameValue('inputs', root.inputs),
    ...sameToolInputs(all, isOrdered, syntax),
    ...sameValue('outputs', root.outputs),
  ];
}

/** Expects the same steps if an error text differs in each execution. */
function sameNames(runs: readonly ExportedRun[]): string[] {
  const names = runs.map(({ name }) => name).sort();
  const given = 'trace.runs.map(({ name }) => name).sort()';
  return names.some((name) => UNSTEADY.test(name)) ? [] : [`  assert.deepEqual(${given}, ${literal(names)});`];
}

function sameValue(field: 'inputs' | 'outputs', payload: unknown): string[] {
  const expected = steady(payload);
  return expected === undefined ? [] : [`  assert.deepEqual(trace.runs[0]?.${field}, ${literal(expected)});`];
}

/** Expects the arguments of each tool, in any order if runs are concurrent. */
function sameToolInputs(runs: readonly ExportedRun[], isOrdered: boolean, { isTypeScript }: TestSyntax): string[] {
  const tools = new Set(runs.filter((run) => run.run_type === 'tool').map(({ name }) => name));
  const assertions = [...tools].flatMap((tool) => {
    const inputs = runs.filter(({ name }) => name === tool).map((run) => steady(run.inputs));
    if (inputs.includes(undefined)) return [];
    const [given, expected] = [`inputsOf(${literal(tool)})`, literal(inputs)];
    return isOrdered
      ? [`  assert.deepEqual(${given}, ${expected});`]
      : [`  assert.deepEqual(new Set(${given}), new Set(${expected}));`];
  });
  if (assertions.length === 0) return [];
  const parameter = isTypeScript ? 'tool: string' : 'tool';
  return [
    `  const inputsOf = (${parameter}) => trace.runs.filter(({ name }) => name === tool).map(({ inputs }) => inputs);`,
    ...assertions,
  ];
}

/** Maximum length of a payload in a test file, in characters of JSON. */
const PAYLOAD_MAX = 2_000;
/** Matches ids and times, which differ in each execution. */
const UNSTEADY = /[\da-f]{8}-[\da-f]{4}-|\d{4}-\d\d-\d\dT\d\d:/i;

function steady<Payload>(payload: Payload): Payload | undefined {
  if (payload === undefined) return undefined;
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
