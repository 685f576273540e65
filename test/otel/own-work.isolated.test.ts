import fs from 'node:fs';
import { context, type Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { environmentOf } from '../support/environment.ts';
import { forgetPackage } from '../support/fresh-copy.ts';
import { ingestServerInTest } from '../support/ingest-server.ts';
import { testFolder } from '../support/test-folder.ts';

/** Calls `around` instead of each file function of Node, until the test has finished. */
function patchFiles(around: (name: string, call: () => unknown) => unknown): void {
  for (const [name, original] of Object.entries(fs)) {
    if (typeof original !== 'function' || !name.endsWith('Sync')) continue;
    const patched = (...args: unknown[]) => around(name, () => Reflect.apply(original, fs, args));
    Reflect.set(fs, name, Object.assign(patched, original));
    onTestFinished(() => void Reflect.set(fs, name, original));
  }
}

/** Makes a span for each call of a file function, like OpenTelemetry's instrumentation of `fs`. */
function traceFiles(tracer: Tracer): void {
  patchFiles((name, call) => {
    const span = tracer.startSpan(name);
    try {
      return call();
    } finally {
      span.end();
    }
  });
}

/** Starts a service, and sets the environment of a program that sends runs to the service. */
async function program(durability: string) {
  const service = await ingestServerInTest();
  environmentOf({ RUNSPAN_ENDPOINT: service.url, RUNSPAN_DURABILITY: durability });
  // The default spool folder is in the home folder, if there is one.
  vi.stubEnv('HOME', testFolder());
  forgetPackage();
  const runspan = await import('#src/index.ts');
  onTestFinished(async () => void (await runspan.shutdown()));
  return { ...runspan, exporters: () => service.infos };
}

/** Creates a provider with our processor and another one, which returns the names of the spans that it has seen. */
async function openTelemetry({ hasContextManager = true } = {}) {
  const { RunSpanProcessor } = await import('#src/otel.ts');
  const spans: string[] = [];
  const other: SpanProcessor = {
    onStart: ({ name }) => void spans.push(name),
    onEnd() {},
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' }), other] });
  if (hasContextManager) context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(async () => {
    await provider.shutdown();
    context.disable();
  });
  return { tracer: provider.getTracer('fs'), spans };
}

describe.each(['memory', 'spill', 'write-ahead'])('with the durability %s', (durability) => {
  test('a span during the creation of an exporter creates no other, even without a context manager', async () => {
    const { flush, stats, exporters } = await program(durability);
    const { tracer } = await openTelemetry({ hasContextManager: false });
    traceFiles(tracer);
    fs.existsSync('/');
    expect(stats().created).toBe(1);
    await flush();
    expect(exporters()).toBe(1);
  });

  test('a run records no traced file function that the library calls', async () => {
    const { traceable, stats } = await program(durability);
    patchFiles((name, call) => traceable(call, { name })());
    const inner = traceable(() => fs.existsSync('/'), { name: 'inner' });
    traceable(() => inner(), { name: 'outer' })();
    expect(stats().created).toBe(3);
  });
});

test('with the durability memory, nothing is read from disk', async () => {
  const { configure, createExporter, startRun, shutdown, stats } = await program('memory');
  const called: string[] = [];
  // In a program, loading undici reads its files.
  await import('undici');
  patchFiles((name, call) => {
    called.push(name);
    return call();
  });
  configure();
  startRun({ name: 'a' }).end();
  startRun({ name: 'b', exporter: createExporter() }).end();
  await shutdown();
  expect(stats().sent).toBe(2);
  expect(called).toEqual([]);
});

test('the log function makes no spans', async () => {
  const { configure } = await program('memory');
  const { tracer, spans } = await openTelemetry();
  const log = vi.fn(() => tracer.startSpan('log').end());
  configure({ log });
  configure({ ['unknown' as 'project']: 'x', log });
  expect(log).toHaveBeenCalled();
  expect(spans).toEqual([]);
});
