// Other exporters beside runspan's: each receives everything, and none records the requests of another.
import { expect, onTestFinished, test } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import type { Snippet } from '../package/snippets.ts';
import { type OpenAiServer, startOpenAiServer } from '../support/openai-server.ts';
import { startProgram } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';
import { asApplication, asInstalled, packagesFor, snippetWith } from './application.ts';
import { type Collector, startCollector } from './collector.ts';
import { laterNode } from './later-node.ts';

interface Outcome {
  readonly code: number | null;
  readonly stderr: string;
}

interface Services {
  readonly receiver: Receiver;
  readonly collector: Collector;
  readonly model: OpenAiServer;
  /** Runs a program with SDK 2, and returns its exit code and its log. */
  run(code: string, variables?: Record<string, string>): Promise<Outcome>;
  /** Runs a snippet with the packages that its page installs, or with SDK 2. */
  runSnippet(snippet: Snippet, line: string): Promise<Outcome>;
}

async function startServices(): Promise<Services> {
  const [receiver, collector, model] = await Promise.all([createReceiver(), startCollector(), startOpenAiServer()]);
  onTestFinished(() => Promise.all([receiver.close(), model.close()]).then(() => undefined));
  const start = async (command: string[], variables?: Record<string, string>): Promise<Outcome> => {
    const { code, stderr } = await startProgram(command, {
      RUNSPAN_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      SENTRY_DSN: collector.url.replace('//', '//key@').concat('/1'),
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: 'local',
      ...variables,
    }).ended;
    return { code, stderr };
  };
  const run: Services['run'] = (code, variables) => start([process.execPath, asApplication(code)], variables);
  const runSnippet: Services['runSnippet'] = (snippet, line) =>
    line === '2' ? run(snippet.code) : start([laterNode(), asInstalled(snippet.code, packagesFor(snippet))]);
  return { receiver, collector, model, run, runSnippet };
}

const SUCCESS = { code: 0, stderr: '' };

/** The lines of OpenTelemetry's SDK. */
const LINES = ['2', '3'];

test.each(LINES)(
  'in SDK %s, an OTLP exporter and runspan receive the same span, but no requests of each other',
  async (line) => {
    const { receiver, collector, runSnippet } = await startServices();
    expect(await runSnippet(snippetWith('new OTLPTraceExporter()'), line)).toEqual(SUCCESS);
    expect(collector.spans('/v1/traces').map(({ name }) => name)).toEqual(['checkout']);
    expect((await receiver.runs()).map(({ name }) => name)).toEqual(['checkout']);
  },
);

/** An item of an envelope: https://develop.sentry.dev/sdk/foundations/transport/envelopes/ */
interface Item {
  readonly type: string;
  readonly payload: {
    readonly exception?: { readonly values: { readonly value: string }[] };
    readonly contexts?: { readonly trace?: { readonly trace_id: string } };
    /** Spans that Sentry 11 streams. */
    readonly items?: { readonly name: string; readonly attributes: Record<string, { readonly value: unknown }> }[];
    /** A transaction of Sentry 10. */
    readonly transaction?: string;
    readonly spans?: { readonly description: string }[];
  };
}

function itemsOf(collector: Collector, type: string): Item['payload'][] {
  const items = collector.bodies('/api/1/envelope/').flatMap((envelope): Item[] => {
    const [, ...lines] = envelope.trim().split('\n');
    return lines.flatMap((line, index) =>
      index % 2 === 0 ? [{ ...JSON.parse(line), payload: JSON.parse(lines[index + 1] ?? '{}') }] : [],
    );
  });
  return items.filter((item) => item.type === type).map(({ payload }) => payload);
}

function errorsOf(collector: Collector): (string | undefined)[] {
  return itemsOf(collector, 'event').map(({ exception }) => exception?.values[0]?.value);
}

test.each(LINES)(
  'with SDK %s, Sentry receives the spans and the error of a trace whose runs runspan receives',
  async (line) => {
    const { receiver, collector, runSnippet } = await startServices();
    expect(await runSnippet(snippetWith('Sentry.openTelemetryIntegration()'), line)).toEqual(SUCCESS);
    const [checkout, pay, ...others] = await receiver.runs();
    expect(others).toEqual([]);
    expect(checkout?.name).toBe('checkout');
    expect(pay).toMatchObject({ name: 'pay', parent_run_id: checkout?.id, inputs: { input: 'Visa' } });
    expect(pay?.error?.split('\n')[0]).toBe('Error: declined: Visa');
    const { trace_id } = (checkout?.extra?.metadata?.otel ?? {}) as { trace_id?: string };
    const spans = collector.spans('/api/1/integration/otlp/v1/traces/');
    expect(spans.map(({ name, traceId }) => ({ name, traceId }))).toEqual([{ name: 'checkout', traceId: trace_id }]);
    expect(errorsOf(collector)).toEqual(['declined: Visa']);
    expect(itemsOf(collector, 'event')[0]?.contexts?.trace?.trace_id).toBe(trace_id);
  },
);

test('the tracing of Sentry records the call of a model, but no requests of runspan', async () => {
  const { receiver, collector, model, run } = await startServices();
  const program = `
    import * as Sentry from '@sentry/node';
    import OpenAI from 'openai';
    import { flush, traceable } from 'runspan';
    import { wrapOpenAI } from 'runspan/openai';

    Sentry.init({ tracesSampleRate: 1 });
    const openai = wrapOpenAI(new OpenAI());
    const ask = traceable((content) =>
      openai.chat.completions.create({ model: 'small', messages: [{ role: 'user', content }] }), { name: 'ask' });
    await Sentry.startSpan({ name: 'request' }, async () => {
      await ask('Rain?');
      await flush();
    });
    await Sentry.close();`;
  expect(await run(program)).toEqual(SUCCESS);
  expect((await receiver.runs()).map(({ name }) => name)).toEqual(['ask', 'openai.chat.completions']);
  const spans = itemsOf(collector, 'span').flatMap(({ items = [] }) => items);
  const requests = spans.flatMap(({ attributes }) => attributes['url.full']?.value ?? []);
  expect(requests).toEqual([`${model.url}/chat/completions`]);
  expect(spans.map(({ name }) => name)).toContain('request');
});

test('the spans of Sentry 10 become runs', async () => {
  const { receiver, collector, run } = await startServices();
  const program = `
    import * as Sentry from '@sentry/node-10';
    import { flush } from 'runspan';
    import { RunSpanProcessor } from 'runspan/otel';

    Sentry.init({ tracesSampleRate: 1, openTelemetrySpanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
    Sentry.startSpan({ name: 'checkout' }, () => Sentry.startSpan({ name: 'pay' }, () => {}));
    await flush();
    await Sentry.close();`;
  expect(await run(program)).toEqual(SUCCESS);
  const [checkout, pay] = await receiver.runs();
  expect([checkout?.name, pay?.name, pay?.parent_run_id]).toEqual(['checkout', 'pay', checkout?.id]);
  const [transaction] = itemsOf(collector, 'transaction');
  expect([transaction?.transaction, transaction?.spans?.[0]?.description]).toEqual(['checkout', 'pay']);
});

test('when an uncaught error ends the process, Sentry receives the error and the runs are kept on disk', async () => {
  const { receiver, collector, run } = await startServices();
  const spool = testFolder();
  const variables = { RUNSPAN_DURABILITY: 'spill', RUNSPAN_SPOOL_DIR: spool };
  const program = `
    import * as Sentry from '@sentry/node';
    import { traceable } from 'runspan';

    Sentry.init({ tracesSampleRate: 1 });
    await traceable(async () => { throw new Error('declined'); }, { name: 'pay' })();`;
  expect(await run(program, variables)).toMatchObject({ code: 1 });
  expect(errorsOf(collector)).toEqual(['declined']);
  const next = `
    import { flush, traceable } from 'runspan';

    traceable(() => {}, { name: 'next' })();
    await flush();`;
  expect(await run(next, variables)).toEqual(SUCCESS);
  expect((await receiver.runs()).map(({ name }) => name)).toEqual(['pay', 'next']);
});
