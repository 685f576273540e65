// An SDK of events that runspan does not know: an adapter for LlamaIndex on the table of open steps, and what it records.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { traceable } from 'runspan';
import { recordRuns } from 'runspan/testing';
import { afterEach, expect, test } from 'vitest';
import type { Fields } from '#src/payload/fields.ts';
import { OpenRuns } from '#src/run/calls/open-runs.ts';

interface Event {
  readonly detail: Fields & { readonly id: string };
  /** The outermost call around the event. Its steps run one inside the other, or one after the other. */
  readonly reason: { readonly id: string } | null;
}

interface CallbackManager {
  on(event: string, listener: (event: Event) => void): void;
}

/** The run types of LlamaIndex's steps, by the name in their events. */
const TYPES = { query: 'chain', retrieve: 'retriever', synthesize: 'chain', llm: 'llm', agent: 'chain' };

/** Records LlamaIndex's steps. Returns a function that interrupts what is open: a step that fails has no event. */
function recordLlamaIndex(manager: CallbackManager): () => void {
  const steps = new OpenRuns<string, { readonly call: string | undefined }>('LlamaIndex');
  for (const [name, runType] of Object.entries(TYPES)) {
    manager.on(`${name}-start`, ({ detail: { id, ...inputs }, reason }) => {
      const above = steps.all().findLast(({ state }) => reason !== null && state.call === reason.id);
      const call = { source: 'llamaindex', inputs: () => inputs };
      steps.start(id, above?.id, { name, runType }, () => ({ state: { call: reason?.id }, inputs, call }));
    });
    manager.on(`${name}-end`, ({ detail: { id, query: _, ...outputs } }) => {
      steps.end(steps.find(id), ({ run }) => run?.keepResult(outputs));
    });
  }
  return () => steps.interrupt('the step had not ended');
}

const today = createRequire(new URL('./today/', import.meta.url));
const load = (name: string) => import(pathToFileURL(today.resolve(`@llamaindex/core/${name}`)).href);
const { Settings } = await load('global');
const { BaseRetriever } = await load('retriever');
const { RetrieverQueryEngine } = await load('query-engine');
const { getResponseSynthesizer } = await load('response-synthesizers');
const { BaseLLM } = await load('llms');
const { TextNode } = await load('schema');
const { wrapLLMEvent } = await load('decorator');

class Rain extends BaseRetriever {
  async _retrieve() {
    return [{ node: new TextNode({ text: 'rain in Cork' }), score: 1 }];
  }
}

class Model extends BaseLLM {
  metadata = { model: 'small', temperature: 0, topP: 1, contextWindow: 1_000 };

  async chat({ messages }: { messages: unknown }) {
    if (JSON.stringify(messages).includes('fail')) throw new Error('no answer');
    return { message: { role: 'assistant', content: 'It rains.' } };
  }
}
Object.defineProperty(Model.prototype, 'chat', { value: wrapLLMEvent(Model.prototype.chat, { name: 'chat' }) });

const interrupt = recordLlamaIndex(Settings.callbackManager);
const engine = new RetrieverQueryEngine(new Rain(), getResponseSynthesizer('compact', { llm: new Model() }));
const recorder = recordRuns();
afterEach(() => recorder.clear());

/** Starts all queries at once, and waits for the events, which LlamaIndex emits later. */
async function ask(...queries: readonly string[]): Promise<void> {
  await Promise.allSettled(queries.map((query) => engine.query({ query })));
  await new Promise((resolve) => setImmediate(resolve));
}

const treeOf = (id?: string): unknown[] =>
  recorder.runs.filter((run) => run.parent_run_id === id).map((run) => [run.name, ...treeOf(run.id)]);
const QUERY = ['query', ['retrieve'], ['synthesize', ['llm']]];

test('steps of concurrent queries are below the query that they belong to, and inside the current run', async () => {
  await traceable(ask, { name: 'ask' })('Cork?', 'Galway?');

  expect(treeOf()).toEqual([['ask', QUERY, QUERY]]);
  expect(recorder.runs.find(({ name }) => name === 'llm')?.outputs).toMatchObject({
    response: { message: { content: 'It rains.' } },
  });
});

test('a step whose end is never reported ends as interrupted, and no other', async () => {
  await ask('fail', 'Cork?');
  interrupt();

  expect(treeOf()).toEqual([QUERY, QUERY]);
  expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  const interrupted = recorder.runs.filter(({ error }) => error === 'Interrupted: the step had not ended');
  expect(interrupted.map(({ name }) => name)).toEqual(['query', 'synthesize', 'llm']);
});
