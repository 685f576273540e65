// Programs that were written for LangSmith run twice: as they are, and with `runspan/langsmith` in their imports. Their
// runs must match, except for the differences below, which docs/from-langsmith.md lists.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { type OpenAiServer, startOpenAiServer } from '../support/openai-server.ts';
import { startNode } from '../support/program.ts';

const PROGRAMS = [
  ...['nested', 'values', 'streams', 'options', 'run-trees', 'openai', 'sdks'],
  ...['feedback', 'packages', 'langchain', 'langchain-callbacks'],
] as const;
type StoredRun = Awaited<ReturnType<Receiver['runs']>>[number];

interface RunRecord extends StoredRun {
  readonly feedback?: unknown;
}

const runner = fileURLToPath(new URL('./run.mjs', import.meta.url));

/** The part of a run that must match, with its children. */
interface Shape {
  readonly name: string;
  readonly run_type: string;
  inputs: Record<string, unknown> | boolean;
  outputs: Record<string, unknown> | boolean;
  readonly error: string | undefined;
  readonly tags: readonly string[];
  metadata: Record<string, unknown>;
  readonly reference_example_id: unknown;
  readonly attachments: unknown;
  readonly feedback: unknown;
  readonly children: readonly Shape[];
}

let model: OpenAiServer;
let expected: RunRecord[];
let recorded: RunRecord[];

beforeAll(async () => {
  model = await startOpenAiServer();
  [expected, recorded] = await Promise.all([runsOf('langsmith', PROGRAMS), runsOf('runspan/langsmith', PROGRAMS)]);
}, 60_000);
afterAll(() => model.close());

test.each(PROGRAMS)('a program for LangSmith records the same runs with runspan/langsmith: %s', (program) => {
  const before = shapes(expected, program);
  expect(before.length).toBeGreaterThan(0);
  expect(shapes(recorded, program)).toEqual(before);
});

test('LANGSMITH_RUNS_ENDPOINTS sends the same runs to the same services as with LangSmith', async () => {
  const [theirs, ours] = await Promise.all(['langsmith', 'runspan/langsmith'].map(shapesOfEndpoints));
  expect(theirs?.every(({ length }) => length > 0)).toBe(true);
  expect(ours).toEqual(theirs);
});

/**
 * Runs a program with two services, the second with a project of its own, and returns the runs of each. The endpoint gets
 * no runs, but LangSmith's client asks it which requests the services support.
 */
async function shapesOfEndpoints(tested: string): Promise<Shape[][]> {
  const [endpoint, one, two] = await Promise.all([createReceiver(), createReceiver(), createReceiver()]);
  for (const receiver of [endpoint, one, two]) onTestFinished(() => receiver.close());
  const endpoints = [
    { api_url: one.url, api_key: 'a' },
    { api_url: two.url, api_key: 'b', project_name: 'mirror' },
  ];
  const { code, stderr } = await startNode(['--disable-warning=DEP0205', runner, 'nested'], {
    ...langsmithVariables(endpoint.url),
    LANGSMITH_RUNS_ENDPOINTS: JSON.stringify(endpoints),
    RUNSPAN_LOG: 'error',
    TESTED_PACKAGE: tested,
  }).ended;
  expect({ code, stderr, runs: await endpoint.runs({}) }).toEqual({ code: 0, stderr: '', runs: [] });
  return [shapes(await one.runs({}), 'nested'), shapes(await two.runs({}), 'mirror')];
}

test.each<[string, string, typeof langsmithVariables, string[]]>([
  ['once, even if a handler of runspan/langchain records them', 'langchain-handler', langsmithVariables, []],
  ['if only runspan is turned on', 'langchain', (url) => ({ RUNSPAN_ENDPOINT: url }), ['score']],
])('steps of LangChain in a traced function are recorded %s', async (_, program, variables, more) => {
  const runs = await runsOf('runspan/langsmith', [program], variables);
  const names = runs.map(({ name }) => name).sort();
  expect(names).toEqual(['FakeListChatModel', 'answer', 'chain', 'format', 'rate', 'score', ...more]);
});

function langsmithVariables(url: string): Record<string, string> {
  return { LANGSMITH_ENDPOINT: url, LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'key' };
}

/**
 * Runs the programs against a receiver and returns their runs. LangSmith's own client sends bodies that a strict receiver
 * refuses, also below LangChain.
 */
async function runsOf(
  tested: string,
  programs: readonly string[],
  variables = langsmithVariables,
): Promise<RunRecord[]> {
  const strict = tested !== 'langsmith';
  const [receiver, lenient] = await Promise.all([createReceiver({ strict }), createReceiver()]);
  try {
    const runs: RunRecord[] = [];
    const groups = strict ? [programs.filter(isStrict), programs.filter((name) => !isStrict(name))] : [programs];
    for (const group of groups.filter((names) => names.length > 0)) {
      const { url } = group.every(isStrict) ? receiver : lenient;
      // In the background, LangSmith's client loses the end of a model call.
      const more = { TESTED_PACKAGE: tested, MODEL_URL: model.url, LANGCHAIN_CALLBACKS_BACKGROUND: 'false' };
      const { code, stderr } = await startNode(['--disable-warning=DEP0205', runner, ...group], {
        ...variables(url),
        ...more,
      }).ended;
      expect({ code, stderr: group.includes('langchain-handler') ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    }
    for (const { runs: query, url } of [receiver, lenient]) {
      for (const run of await query({ limit: 1_000 })) runs.push({ ...run, feedback: await feedbackOn(url, run) });
    }
    return runs;
  } finally {
    await Promise.all([receiver.close(), lenient.close()]);
  }
}

async function feedbackOn(url: string, { id, name }: StoredRun): Promise<unknown> {
  return name === 'rated' ? await (await fetch(`${url}/feedback?run=${id}`)).json() : undefined;
}

/** Whether the requests of a program are in the documented interface. It has no feedback without a token. */
function isStrict(program: string): boolean {
  return !program.startsWith('langchain') && program !== 'feedback';
}

function shapes(runs: readonly RunRecord[], program: string, parent?: string): Shape[] {
  const own = runs.filter((run) => run.session_name === program && run.parent_run_id === parent);
  const found = own.map((run) => shape(run, shapes(runs, program, run.id)));
  // LangSmith's times have milliseconds, so the order of its runs is not exact.
  return found.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

function shape(run: RunRecord, children: Shape[]): Shape {
  const { name, run_type, inputs = {}, outputs = {}, error, tags = [], reference_example_id, attachments } = run;
  const { feedback, extra } = run;
  const result: Shape = {
    ...{ name, run_type, error: error?.split('\n')[0], tags, reference_example_id, attachments, children },
    ...withoutIds({ inputs, outputs, metadata: extra?.metadata ?? {}, feedback, end: extra?.runspan_end_reason }),
  };
  for (const { apply } of DIFFERENCES) apply(result);
  return result;
}

function withoutIds<Value>(value: Value): Value {
  const text = JSON.stringify(value)
    .replaceAll(/\d{8}T\d{12}Z|\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'ID');
  return JSON.parse(text);
}

/** The differences that docs/from-langsmith.md lists. Each makes the runs of both packages equal. */
const DIFFERENCES: readonly { readonly reason: string; apply(run: Shape): unknown }[] = [
  {
    reason: 'LangSmith adds the LANGSMITH_ variables of the environment to the metadata of each run.',
    apply: ({ metadata }) => remove(metadata, 'LANGSMITH_TRACING', 'LANGSMITH_RUNS_ENDPOINTS'),
  },
  {
    reason: 'runspan records the model and the id of the response of a model call.',
    apply: ({ metadata }) => remove(metadata, 'response_model', 'response_id', 'recorded_by', 'request_id'),
  },
  {
    reason: 'LangSmith records the inputs of an OpenAI call with request options as a list of two arguments.',
    apply(run) {
      const { args } = run.inputs as { args?: { messages?: unknown }[] };
      if (args?.[0]?.messages !== undefined) run.inputs = args[0];
    },
  },
  {
    reason: 'runspan records a streamed response as the same object as a whole response.',
    apply({ outputs }) {
      if (typeof outputs === 'object' && outputs.object === 'chat.completion.chunk') outputs.object = 'chat.completion';
    },
  },
  {
    reason: 'runspan records the class of an error whose name is only "Error".',
    apply: (run) => Object.assign(run, { error: run.error?.replace('BadRequestError: ', 'Error: ') }),
  },
  {
    reason: 'LangSmith repeats the token counts of outputs in the metadata.',
    apply: ({ metadata }) => metadata.ls_provider === 'own' && remove(metadata, 'usage_metadata'),
  },
  {
    reason: 'runspan records a stream that the consumer leaves as cancelled, without an error.',
    apply(run) {
      if (run.error === 'Cancelled') Object.assign(run, { error: undefined, end: 'cancelled' });
    },
  },
  {
    reason: 'The callbacks of runspan record messages in its own form.',
    apply(run) {
      if (run.name !== 'asked') return;
      run.inputs = JSON.stringify(run.inputs).includes('"content":"why"');
      run.outputs = JSON.stringify(run.outputs).includes('"content":"yes"');
    },
  },
  {
    reason: 'runspan records calls of the AI SDK in its own form.',
    apply(run) {
      if (run.metadata.ls_integration !== 'vercel-ai-sdk') return;
      run.inputs = Object.keys(run.inputs).length > 0;
      run.outputs = JSON.stringify(run.outputs).includes('It is raining.');
      const { usage_metadata: usage } = run.metadata as { usage_metadata?: Record<string, unknown> };
      remove(usage ?? {}, 'input_token_details', 'output_token_details');
      remove(run.metadata, 'ls_agent_type', 'ai_sdk_method', 'ls_provider', 'ls_model_type', 'ls_invocation_params');
    },
  },
];

function remove(object: object, ...keys: string[]): void {
  for (const key of keys) Reflect.deleteProperty(object, key);
}
