// An application with one major version of OpenTelemetry's SDK, which prints the runs that its spans become:
// `otel-sdk-program.mjs <1, 2 or 3> <set-up>`.
import { traceable } from 'runspan';
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';

const [line, setUp] = process.argv.slice(2);
const { load } = await import({ 1: './otel-1/load.mjs', 2: './otel/load.mjs', 3: './today/load.mjs' }[line]);
const { context, ROOT_CONTEXT, trace } = await load('@opentelemetry/api');
const { AsyncLocalStorageContextManager } = await load('@opentelemetry/context-async-hooks');
const sdk = await load(line === '3' ? '@opentelemetry/sdk-trace' : '@opentelemetry/sdk-trace-base');
const recorder = recordRuns();

/** Set-ups. Each returns its shutdown function. */
const setUps = {
  basic() {
    const { BasicTracerProvider, TracerProvider = BasicTracerProvider } = sdk;
    const provider = new TracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(provider);
    return provider;
  },
  added() {
    const provider = new sdk.BasicTracerProvider();
    provider.addSpanProcessor(new RunSpanProcessor({ shouldExport: 'all' }));
    provider.register({ contextManager: new AsyncLocalStorageContextManager().enable() });
    return provider;
  },
  async node() {
    const { NodeTracerProvider } = await load('@opentelemetry/sdk-trace-node');
    const provider = new NodeTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
    provider.register();
    return provider;
  },
  async sdk() {
    const { NodeSDK } = await load('@opentelemetry/sdk-node');
    const all = new NodeSDK({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })], instrumentations: [] });
    all.start();
    return all;
  },
};

const provider = await setUps[setUp]();
const tracer = trace.getTracer('shop', '1.2.3');
const soon = () => new Promise((resolve) => setImmediate(resolve));

/** Calls `fn` in an active span of this name, on another turn of the event loop. */
const inSpan = (name, fn, attributes = {}) =>
  tracer.startActiveSpan(name, { attributes }, async (span) => {
    await soon();
    await fn(span);
    span.end();
  });

await inSpan('agent', async (agent) => {
  await inSpan('chat', (span) => span.setAttribute('gen_ai.usage.input_tokens', 3), {
    'gen_ai.operation.name': 'chat',
  });
  await traceable(() => inSpan('in a function', soon), { name: 'function' })();
  agent.setAttribute('shop.basket', { tea: 2 });
  agent.recordException(new RangeError('no tea'));
  agent.setStatus({ code: 2, message: 'no tea' });
});
const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };
await context.with(trace.setSpanContext(ROOT_CONTEXT, remote), () => inSpan('served', soon));
tracer.startSpan('open').setAttribute('shop.user', 'ann');
await provider.shutdown();
process.stdout.write(JSON.stringify(recorder.runs));
