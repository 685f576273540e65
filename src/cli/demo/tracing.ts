import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../base/text.ts';
import { AgentServer } from '../../clients/agent-server/agent-server.ts';
import { traced } from '../../instrument/methods.ts';
import { traceable } from '../../instrument/traceable.ts';
import type { TraceSummary } from '../../receiver/domain/run-view.ts';
import { startRun } from '../../run/start-run.ts';
import { configure } from '../../runspan.ts';
import { CommandFailure } from '../command-line.ts';
import { type DemoContext, queried, type Tracer } from './context.ts';

/** Without OpenTelemetry's API, there are no spans. */
const withoutSpans: Tracer = (_, __, work) => work();

class Prices {
  @traced({ name: 'search prices', runType: 'retriever' })
  async search(question: string): Promise<string> {
    return ['Tea costs 2 €.', 'Coffee costs 3 €.'].find((price) => question.includes(price.split(' ')[0] ?? '')) ?? '';
  }
}

/** Stands for a model, so that the demo needs no key. */
const callModel = traceable(
  async (_question: string, prices: string) => ({
    text: `We have it. ${prices}`,
    usage_metadata: { input_tokens: 900, output_tokens: 40 },
  }),
  { name: 'call model', runType: 'llm', metadata: { ls_provider: 'openai', ls_model_name: 'gpt-4.1-mini' } },
);

/** Returns a function whose trace has a span, a decorated method, a model call and a run of an agent server. */
function shopAssistant(tracer: Tracer, agents: AgentServer) {
  const prices = new Prices();
  const answer = async (question: string): Promise<string> => {
    const found = await tracer('retrieve', { 'gen_ai.operation.name': 'retrieval' }, () => prices.search(question));
    const { text } = await callModel(question, found);
    const messages = [{ type: 'human', content: text }];
    await agents.statelessRuns.wait({ assistant_id: 'agent', input: { messages } });
    return text;
  };
  return traceable(answer, { name: 'answer' });
}

/** Records the traces that the page shows: a conversation, a failure and a slow run. */
export async function tracing(context: DemoContext): Promise<void> {
  const { platform, service, createTracer, check } = context;
  const exporter = configure({ ...service, project: 'demo' });
  const agents = new AgentServer({ url: platform.agentUrl, apiKey: platform.apiKey });
  const answer = shopAssistant(await tracerOf(createTracer), agents);
  const conversation = answer.with({ threadId: 'conversation-1', userId: 'ada' });
  check('a wrapped function returns its result', await conversation('How much is Tea?'), 'We have it. Tea costs 2 €.');
  await conversation('And Coffee?');
  const order = traceable(() => Promise.reject(new Error('The shop is closed')), { name: 'order' });
  check('a wrapped function throws its error', await order().catch(String), 'Error: The shop is closed');
  startRun({ name: 'monthly report', startTime: Date.now() - 12_000 }).end({ pages: 30 });
  await exporter.flush();
  const { created, sent, dropped } = exporter.stats();
  await Promise.all([exporter.close(), agents.close()]);
  check('created = sent + dropped', [sent, dropped], [created, 0]);
  await checkTraces(context);
}

/**
 * Returns `createTracer` of a module, by default the minimal one. Returns nothing if no file is named and OpenTelemetry's
 * API is not installed.
 */
export async function tracerIn(file: string | undefined): Promise<DemoContext['createTracer']> {
  try {
    const url = file === undefined ? undefined : pathToFileURL(resolve(file)).href;
    return (await (url === undefined ? import('./minimal-tracer.ts') : import(url))).createTracer;
  } catch (thrown) {
    if (file === undefined && (thrown as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw new CommandFailure(`--tracer: ${messageOf(thrown)}`);
  }
}

async function tracerOf(createTracer: DemoContext['createTracer']): Promise<Tracer> {
  if (createTracer === undefined) return withoutSpans;
  const { RunSpanProcessor } = await import('../../otel/run-span-processor.ts');
  return createTracer(new RunSpanProcessor({ shouldExport: 'all' }));
}

async function checkTraces({ platform, createTracer, check }: DemoContext): Promise<void> {
  const { items } = await queried<{ readonly items: readonly TraceSummary[] }>(platform, '/query/traces?project=demo');
  check('the names of the traces', items.map(({ name }) => name).sort(), [
    'answer',
    'answer',
    'monthly report',
    'order',
  ]);
  const [turn] = items.filter(({ name }) => name === 'answer');
  check('a failed trace', items.find(({ name }) => name === 'order')?.outcome, 'error');
  check('a trace with a cost', Number(turn?.trace.usage?.total_cost) > 0);
  const runs = await platform.runs({ traceId: turn?.id ?? '' });
  const parentOf = (name: string): string | undefined => {
    const run = runs.find((one) => one.name === name);
    return runs.find(({ id }) => id === run?.parent_run_id)?.name;
  };
  const span = createTracer === undefined ? 'answer' : 'retrieve';
  check('the decorated method is below its caller', parentOf('search prices'), span);
  if (createTracer !== undefined) check('the span is below the function', parentOf('retrieve'), 'answer');
  check(
    'the run of the agent server is in the trace',
    runs.some(({ name }) => name === 'agent'),
  );
}
