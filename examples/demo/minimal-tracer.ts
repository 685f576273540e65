import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { type Context, type ContextManager, context, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import type { RunSpanProcessor } from 'runspan/otel';
import type { Tracer } from './context.ts';

/** Returns a tracer without OpenTelemetry's SDK, which the package does not install. */
export function createTracer(processor: RunSpanProcessor): Tracer {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...args) => storage.run(active, () => work.apply(self as never, args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
  return async (name, attributes, work) => {
    const parentContext = context.active();
    const parent = trace.getSpanContext(parentContext);
    const ids = { traceId: parent?.traceId ?? hexId(16), spanId: hexId(8), traceFlags: 1 };
    const span = {
      ...{ name, kind: 0, attributes, links: [], events: [], status: { code: 0 }, resource: { attributes: {} } },
      spanContext: () => ids,
      ...(parent && { parentSpanContext: parent }),
      startTime: now(),
      endTime: now(),
    };
    processor.onStart(span, parentContext);
    try {
      return await context.with(trace.setSpan(parentContext, span as unknown as Span), work);
    } finally {
      span.endTime = now();
      processor.onEnd(span);
    }
  };
}

function hexId(bytes: number): string {
  return randomBytes(bytes).toString('hex');
}

function now(): [seconds: number, nanoseconds: number] {
  const ms = Date.now();
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000];
}
