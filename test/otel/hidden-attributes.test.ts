import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { LoggerProvider } from '@opentelemetry/sdk-logs';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NO_CONTENT } from '#src/otel/mapping/hidden-content.ts';
import { vocabularies } from '#src/otel/mapping/row-index.ts';
import { RunLogRecordProcessor, RunSpanProcessor } from '#src/otel.ts';
import { type RecordOptions, recordRuns } from '#src/testing.ts';
import { cases } from '../support/campaign.ts';
import { logLines } from '../support/log-lines.ts';
import '../support/seeded.ts';

type Attributes = Readonly<Record<string, unknown>>;

const BOTH = { hideInputs: true, hideOutputs: true };
const MARK = 'MARKED!!';

const spanLimits = {
  attributeCountLimit: 1_000,
  attributePerEventCountLimit: 1_000,
  attributePerLinkCountLimit: 1_000,
};

/** Records a span that has the attributes everywhere: its own, and those of events, a link, log records and the resource. */
function recorded(attributes: Attributes, options: RecordOptions) {
  using recorder = recordRuns(options);
  const { exporter } = recorder;
  const processor = new RunSpanProcessor({ exporter, shouldExport: 'all', resource: ['*', 'acme.team'] });
  const provider = new BasicTracerProvider({
    spanProcessors: [processor],
    resource: { attributes } as never,
    spanLimits,
  });
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
  llm.prompt_template.template gen_ai.request.extra_body gen_ai.request.extra_query gen_ai.evaluation.explanation http.request.header.x-question url.fragment process.command_args logfire.msg`);
const contentOf = (side: 'inputs' | 'outputs') =>
  vocabularies.flatMap((one) => (one[side] ?? []).map(([name]) => name.replace('*', 'x')));
// The name of a prompt is no content, unless it is the request of an MCP client.
const CONTENT = [...OF_OTHERS, ...contentOf('inputs'), ...contentOf('outputs')].filter(
  (name) => name !== 'gen_ai.prompt.name',
);
const generated = fc
  .stringMatching(/^[a-z][a-zA-Z_]{2,11}([.:_][a-z_]{1,12}){0,3}$/)
  .filter((name) => !NO_CONTENT.some((known) => name.startsWith(known.replace('*', ''))));
const values: readonly unknown[] = [
  ...[MARK, MARK.repeat(250), [MARK], `[{"role":"user","content":"${MARK}"}]`, `{"instructions":"${MARK}"}`],
];
const KINDS = [{}, { 'openinference.span.kind': 'LLM' }, { 'ai.operationId': 'ai.generateText.doGenerate' }];

test('no text of an attribute whose name is that of content or unknown is recorded while both sides are hidden', () => {
  const property = fc.property(fc.array(generated, { minLength: 1, maxLength: 12 }), (unknown) => {
    for (const [value, kind] of values.flatMap((one) => KINDS.map((other) => [one, other] as const))) {
      const given = Object.fromEntries([...CONTENT, ...unknown].map((name) => [name, value]));
      const { run, events } = recorded({ ...given, ...kind, 'acme.count': 7, 'acme.isNew': false }, BOTH);
      expect(JSON.stringify(run)).not.toContain(MARK);
      expect(run?.extra?.metadata).toMatchObject({ 'acme.count': 7, 'acme.isNew': false });
      expect(events[0]?.kwargs).toMatchObject({ 'acme.count': 7, 'acme.isNew': false });
    }
  });
  fc.assert(property, { numRuns: cases(10) });
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
    [...known, ...kept, 'acme.team', 'tenants', 'gen_ai.input.messages'].map((name) => [name, name]),
  );
  const keepAttributes = ['tenant', 'app.*', 'gen_ai.*'];
  const { metadata, events } = recorded(attributes, { ...BOTH, keepAttributes });
  const shown = Object.fromEntries([...known, ...kept].map((name) => [name, name]));
  // The processor names `acme.team` of the resource.
  expect(metadata).toMatchObject({ ...shown, 'acme.team': 'acme.team' });
  expect(events[0]?.kwargs).toEqual(shown);
  expect(recorded({ 'gen_ai.request.model': 'm', 'langsmith.metadata.plan': 'pro' }, BOTH).metadata).toMatchObject({
    ls_model_name: 'm',
    plan: 'pro',
  });
  expect(recorded(attributes, {}).metadata).not.toHaveProperty('hidden_attributes');
});

test('one line names the attributes that were left out', async () => {
  const end = () => new RunSpanProcessor().shutdown();
  await end();
  const lines = logLines('warn');
  for (const name of ['acme.note', 'acme.note', 'acme.other']) recorded({ [name]: MARK }, BOTH);
  await end();
  recorded({ 'acme.third': MARK }, BOTH);
  await end();
  const told = 'attributes that may contain hidden content are left out: acme.note, content, acme.other';
  expect(lines).toEqual([`warn: ${told}; name those without content in \`keepAttributes\`.`]);
});
