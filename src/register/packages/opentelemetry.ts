import { diagnostics } from '../../base/diagnostics.ts';
import { SPAN_RECORDER } from '../../base/shared.ts';
import { fieldsOf } from '../../payload/fields.ts';
import { nodeModule } from '../../platform/node.ts';
import { OPENTELEMETRY, withoutTracing } from '../../platform/suppress-tracing.ts';
import type { Instrumentation, ModuleHooks, ModuleLoader } from '../module-hooks.ts';
import { watchProperty } from '../watch-property.ts';

const PLACE = 'runspan/register opentelemetry';
/** How long the provider's `shutdown` waits if the service is unavailable. The default of 29 s would be too long. */
const FLUSH_TIMEOUT_MS = 3_000;

/** Adds a `RunSpanProcessor` to the global tracer provider, so that spans and runs form one trace. */
export const opentelemetry: Instrumentation = {
  name: 'opentelemetry',
  start() {
    watchProperty(PLACE, globalThis, OPENTELEMETRY, (api) =>
      // The OpenTelemetry API first registers a proxy. Later, the application's provider becomes the proxy's delegate.
      watchProperty(PLACE, api, 'trace', (proxy) => watchProperty(PLACE, proxy, '_delegate', addProcessor)),
    );
  },
};

/**
 * Adds a processor to a tracer provider from SDK 1.x, 2.x or 3.x. All three SDK versions have the same list of
 * processors, but only 1.x has a method to add a processor.
 */
function addProcessor(provider: object): void {
  const { _activeSpanProcessor, activeSpanProcessor = _activeSpanProcessor, addSpanProcessor } = fieldsOf(provider);
  const { _spanProcessors: processors } = fieldsOf(activeSpanProcessor);
  if (Array.isArray(processors)) {
    // The `RunSpanProcessor` must be first in the list, because some processors change the attributes of ended spans.
    if (!processors.some((one) => SPAN_RECORDER in one)) processors.unshift(withoutTracing(createProcessor));
  } else if (typeof addSpanProcessor === 'function') {
    Reflect.apply(addSpanProcessor, provider, [withoutTracing(createProcessor)]);
  } else {
    diagnostics.debug(`${PLACE}: the tracer provider has no list of span processors, so its spans are not recorded.`);
  }
}

/**
 * Loads `runspan/otel` only if the application has a provider. Loads synchronously, so that the first span is recorded.
 */
function createProcessor(): object {
  const { createRequire, registerHooks } = nodeModule('node:module') as unknown as ModuleLoader;
  const hooks = registerHooks?.({ resolve });
  try {
    const { RunSpanProcessor } = createRequire(import.meta.url)('runspan/otel');
    // Named, because the processor reports what its default leaves out, and an untouched program prints no such line.
    const processor = new RunSpanProcessor({ shouldExport: 'llm' });
    const flush = processor.forceFlush.bind(processor);
    // The program does not know of the processor, so its own flush must not fail.
    return Object.assign(processor, { flushTimeoutMs: FLUSH_TIMEOUT_MS, forceFlush: () => flush().catch(() => {}) });
  } finally {
    hooks?.deregister();
  }
}

/**
 * Resolves `@opentelemetry/api` in the application, because `npx runspan dev` installs no optional peer dependencies.
 */
const resolve: NonNullable<ModuleHooks['resolve']> = (specifier, context, nextResolve) => {
  try {
    return nextResolve(specifier, context);
  } catch (thrown) {
    if (specifier !== '@opentelemetry/api') throw thrown;
    // With `node -e`, the program has no file, so a file name in the working directory is used instead.
    const parentURL = nodeModule('node:url').pathToFileURL(process.argv[1] ?? 'program').href;
    return nextResolve(specifier, { ...context, parentURL });
  }
};
