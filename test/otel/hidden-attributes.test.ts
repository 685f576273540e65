import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { LoggerProvider } from '@opentelemetry/sdk-logs';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NO_CONTENT } from '#src/otel/mapping/hidden-content.ts';
import { vocabularies } from '#src/otel/mapping/row-index.ts';
import { RunLogRecordProcessor, RunSpanProcessor } from '#src/otel.ts';
import { type RecordOptions, recordRuns } from '#src/testing.ts';
import { logLines } from '../support/log-lines.ts';
import '../support/seeded.ts';

type Attributes = Readonly<Record<string, unknown>>;

const BOTH = { hideInputs: true, hideOutputs: true };
const MARK = 'MARKED!!';

/** Records a span that has the attributes everywhere: its own, and those of events, a link, log records and the resource. */
function recorded(attributes: Attributes, options: RecordOptions) {
  using recorder = recordRuns(options);
  const { exporter } = recorder;
  const processor = new RunSpanProcessor({ exporter, shouldExport: 'all', resource: ['*'] });
  const provider = new BasicTracerProvider({ spanProcessors: [processor], resource: { attributes } as never });
  const logger = new LoggerProvider({ processors: [new RunLogRecordProcessor()] }).getLogger('t');
  const given = attributes as Record<string, string>;
  const links = [{ context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }, attributes: given }];
  const span = provider.getTracer('t').startSpan('work', { kind: SpanKind.CLIENT, attributes: given, links });
  const context = trace.setSpan(ROOT_CONTEXT, span);
  for (const eventName of ['step', 'gen_ai.user.message', 'gen_ai.choice', 'codex.tool_result']) {
    span.addEvent(eventName, { ...given, content: MARK });
    logger.emit({ eventName, body: { ...given, content: MARK }, attributes: given, context });
  }
  span.end();
  const [run] = recorder.runs;
  return { metadata: run?.extra?.metadata ?? {}, events: run?.events as { kwargs?: Attributes }[], run };
}

const words = (text: string) => text.trim().split(/\s+/);
const OF_OTHERS = words(`
  gen_ai.response.text gen_ai.response.tool_calls gen_ai.request.messages gen_ai.response.object gen_ai.tool.input
  gen_ai.tool.output gen_ai.embeddings.input lmnr.span.input lmnr.span.output braintrust.input_json braintrust.output_json
  genkit:input genkit:output mlflow.spanInputs mlflow.spanOutputs langfuse.experiment.item.expected_output
  openai.request.messages ai.settings.instructions ai.response.providerMetadata llm.invocation_parameters input output
  gen_ai.evaluation.explanation http.request.header.x-question url.fragment process.command_args logfire.msg`);
const contentOf = (side: 'inputs' | 'outputs') =>
  vocabularies.flatMap((one) => (one[side] ?? []).map(([name]) => name.replace('*', 'x')));
const CONTENT = [...OF_OTHERS, ...contentOf('inputs'), ...contentOf('outputs')];
const generated = fc
  .stringMatching(/^[a-z][a-zA-Z_]{2,11}([.:_][a-z_]{1,12}){0,3}$/)
  .filter((name) => !NO_CONTENT.some((known) => name.startsWith(known.replace('*', ''))));
const names = fc.uniqueArray(fc.oneof(fc.constantFrom(...CONTENT), generated), { minLength: 1, maxLength: 12 });
const values = fc.constantFrom<unknown>(
  ...[MARK, MARK.repeat(250), [MARK], `[{"role":"user","content":"${MARK}"}]`, `{"instructions":"${MARK}"}`],
);
const KINDS = [{}, { 'openinference.span.kind': 'LLM' }, { 'ai.operationId': 'ai.generateText.doGenerate' }];

test('no text of an attribute whose name is that of content or unknown is recorded while both sides are hidden', () => {
  const attributes = fc.tuple(names, fc.array(values, { minLength: 12, maxLength: 12 }), fc.constantFrom(...KINDS));
  const property = fc.property(attributes, ([keys, texts, kind]) => {
    const given = { ...Object.fromEntries(keys.map((key, at) => [key, texts[at]])), ...kind };
    const { run, events } = recorded({ ...given, 'acme.count': 7, 'acme.isNew': false }, BOTH);
    expect(JSON.stringify(run)).not.toContain(MARK);
    expect(run?.extra?.metadata).toMatchObject({ 'acme.count': 7, 'acme.isNew': false });
    expect(events[0]?.kwargs).toMatchObject({ 'acme.count': 7, 'acme.isNew': false });
  });
  fc.assert(property);
});

test.each([
  [{ hideInputs: true }, 'gen_ai.output.messages', 'gen_ai.input.messages'],
  [{ hideOutputs: true }, 'gen_ai.input.messages', 'gen_ai.output.messages'],
])('with %j, %s stays, and unknown attributes are left out', (options, shown, hidden) => {
  const text = (name: string) => `[{"role":"user","parts":[{"type":"text","content":"of ${name}"}]}]`;
  const { run } = recorded(
    { [shown]: text(shown), [hidden]: text(hidden), 'acme.note': MARK, 'acme.list': [1] },
    options,
  );
  expect(JSON.stringify(run)).toContain(`of ${shown}`);
  expect(JSON.stringify(run)).not.toMatch(new RegExp(`of ${hidden}|acme`));
  // Two in each of the span, the link, the resource and the shown event, and three in the event `step`.
  expect(run?.extra?.metadata).toMatchObject({ hidden_attributes: 11 });
});

test('known names without content stay, and those that `keepAttributes` names', () => {
  const known = words(`
    service.name server.address release environment version error.type gen_ai.tool.name gen_ai.agent.id k8s.pod.name
    gen_ai.conversation.id gen_ai.operation.name sentry.op langfuse.trace.name mcp.method.name db.system user_agent.name`);
  const kept = ['tenant', 'app.a', 'app.b.c'];
  const attributes = Object.fromEntries(
    [...known, ...kept, 'tenants', 'gen_ai.input.messages'].map((name) => [name, name]),
  );
  const keepAttributes = ['tenant', 'app.*', 'gen_ai.*'];
  const { metadata, events } = recorded(attributes, { ...BOTH, keepAttributes });
  const shown = Object.fromEntries([...known, ...kept].map((name) => [name, name]));
  expect(metadata).toMatchObject(shown);
  expect(events[0]?.kwargs).toEqual(shown);
  expect(recorded({ 'gen_ai.request.model': 'm', 'langsmith.metadata.plan': 'pro' }, BOTH).metadata).toMatchObject({
    ls_model_name: 'm',
    plan: 'pro',
  });
  expect(recorded(attributes, {}).metadata).not.toHaveProperty('hidden_attributes');
});

test('one line names the attributes that were left out', async () => {
  const lines = logLines('warn');
  for (const name of ['acme.note', 'acme.note', 'acme.other']) recorded({ [name]: MARK }, BOTH);
  for (let at = 0; at < 2; at++) await new RunSpanProcessor().shutdown();
  const told = 'warn: attributes that may contain hidden content are left out: ';
  expect(lines.filter((line) => line.startsWith(told))).toHaveLength(1);
  expect(lines.join()).toMatch(/acme\.note, .*acme\.other.*; name those without content in `keepAttributes`\./);
  expect(lines.join()).not.toContain(MARK);
});
