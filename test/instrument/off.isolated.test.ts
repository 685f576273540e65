// What runs below "off" is sent by nobody, whichever library reads our context.
import '@langchain/core/context';
import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { RunnableLambda } from '@langchain/core/runnables';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  createExporter,
  fromHeaders,
  startRun,
  type TraceableOptions,
  traceable,
  withExporter,
  withRun,
} from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { traceable as ofLangSmith } from '#src/langsmith.ts';
import type { RunRecorder } from '#src/testing.ts';
import { inSpan, setUp, soon } from '../otel/set-up.ts';
import { cases } from '../support/campaign.ts';
import { environmentOf } from '../support/environment.ts';
import { startReceiver } from '../support/receiver.ts';
import { record, treeOf } from './recorder.ts';

// The first function that is traced takes over the storage of LangChain. No step may be open then.
ofLangSmith(() => {});

type Inside = () => Promise<unknown>;
/** Calls a function in a call of its kind. */
type Kind = (name: string, inside: Inside) => unknown;

interface Call {
  readonly kind: string;
  readonly below: readonly Call[];
}

function callTrees(kinds: Kinds, depth = 3): fc.Arbitrary<Call> {
  const below = depth === 0 ? fc.constant([]) : fc.array(callTrees(kinds, depth - 1), { maxLength: 2 });
  return fc.record({ kind: fc.constantFrom(...Object.keys(kinds)), below });
}

type Tree = { [name: string]: Tree };
type Kinds = Readonly<Record<string, Kind>>;

/** Makes the calls, and returns the runs that must be recorded. Each call with a run asks a model first. */
async function made({ kind, below }: Call, path: string, kinds: Kinds): Promise<Tree> {
  const isOff = path.startsWith('secret') || kind in OFF;
  const name = isOff ? path.replace('seen', 'secret') : path;
  const trees: Tree[] = [];
  await kinds[kind]?.(name, async () => {
    await askModel(name);
    await soon();
    trees.push(...(await Promise.all(below.map((call, index) => made(call, `${name}-${index}`, kinds)))));
  });
  if (isOff) return {};
  const tree = { [name]: Object.assign({ 'openai.chat.completions': {} }, ...trees) };
  return kind === 'inStep' ? { [`step of ${name}`]: tree } : tree;
}

async function askModel(content: string): Promise<void> {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });
  await (await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body })).text();
}

/** Answers and records `fetch` until the test finishes. */
function answerFetch() {
  vi.stubGlobal('fetch', async () => {
    await soon();
    return Response.json({ model: 'm', choices: [] });
  });
  onTestFinished(recordFetch());
}

const order = `20261128T000000000000Z${'019a0000-0000-7000-8000-000000000000'}`;
const unsampled = () => fromHeaders({ 'runspan-trace': order, baggage: 'runspan-sampled=false' });
const offExporter = createExporter({ endpoint: 'http://127.0.0.1:9', tracing: false });

async function generated(inside: Inside, options: TraceableOptions): Promise<void> {
  const generator = async function* () {
    yield await inside();
  };
  for await (const _ of traceable(generator, options as object)());
}

const OFF: Kinds = {
  enabled: (name, inside) => traceable(inside, { name, enabled: false })(),
  enabledOfGenerator: (name, inside) => generated(inside, { name, enabled: false }),
  tracing: (name, inside) => traceable(inside, { name, exporter: offExporter })(),
  tracingAround: (_, inside) => withExporter(offExporter, inside),
  unsampled: (_, inside) => withRun(unsampled(), inside),
  tracingEnabled: (name, inside) => ofLangSmith(inside, { name, tracingEnabled: false })(),
};

/** Makes up to 50 trees of calls at the same time. What is off must be nowhere, and what is on must be whole. */
async function expectWhole(on: Kinds, recorder: RunRecorder, settled: () => Promise<unknown> = soon): Promise<void> {
  const kinds = { ...on, ...OFF };
  const calls = fc.array(callTrees(kinds), { minLength: 1, maxLength: 50 });
  const whole = fc.asyncProperty(calls, async (given) => {
    const trees = await Promise.all(
      given.map((call, index) => made({ kind: 'function', below: [call] }, `seen${index}`, kinds)),
    );
    await settled();
    const { runs } = recorder;
    recorder.clear();
    expect(treeOf(runs)).toEqual(Object.assign({}, ...trees));
    expect(JSON.stringify(runs)).not.toContain('secret');
  });
  await fc.assert(whole, { numRuns: cases(40) });
}

test('functions, generators, spans, steps and requests that are on and off at the same time', async () => {
  const { tracer, recorder } = setUp();
  answerFetch();
  const { exporter } = recorder;
  const callbacks = [new RunspanCallbackHandler({ exporter })];
  const on: Kinds = {
    function: (name, inside) => traceable(inside, { name, enabled: true, exporter })(),
    generator: (name, inside) => generated(inside, { name }),
    byHand: (name, inside) => withRun(startRun({ name, exporter }), inside),
    span: (name, inside) => inSpan(tracer, name, inside),
    step: (name, inside) => RunnableLambda.from(inside).invoke(1, { callbacks, runName: name }),
  };
  await expectWhole(on, recorder);
});

test("LangChain's own tracer records what is on, and sends nothing of what is off", async () => {
  const receiver = await startReceiver();
  environmentOf({ LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: receiver.url });
  const recorder = record();
  answerFetch();
  const on: Kinds = {
    function: (name, inside) => ofLangSmith(inside, { name })(),
    inStep: (name, inside) => {
      const step = RunnableLambda.from(() => ofLangSmith(inside, { name })());
      return step.withConfig({ runName: `step of ${name}` }).invoke(1);
    },
  };
  await expectWhole(on, recorder, awaitAllCallbacks);
  expect(await receiver.runs()).toEqual([]);
});
