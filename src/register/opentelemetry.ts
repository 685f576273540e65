import { diagnostics } from '../base/diagnostics.ts';
import { nodeModule } from '../base/node.ts';
import { SPAN_RECORDER } from '../base/shared.ts';
import { OPENTELEMETRY } from '../base/timers.ts';
import { fieldsOf } from '../payload/fields.ts';
import type { Instrumentation, ModuleHooks, ModuleLoader } from './module-hooks.ts';
import { watchProperty } from './watch-property.ts';

const PLACE = 'runspan/register opentelemetry';
/** The provider's `shutdown` waits this long if the service is not available. The default of 29 s would be too long. */
const FLUSH_TIMEOUT_MS = 3_000;

/** Adds a `RunSpanProcessor` to the global tracer provider, so that spans and runs form one trace. */
export const opentelemetry: Instrumentation = {
  name: 'opentelemetry',
  start() {
    watchProperty(PLACE, globalThis, OPENTELEMETRY, (api) =>
      // The API registers a proxy first. Later, it sets the application's provider as the delegate of the proxy.
      watchProperty(PLACE, api, 'trace', (proxy) => watchProperty(PLACE, proxy, '_delegate', addProcessor)),
    );
  },
};

/** Tracer providers of the SDK 1.x, 2.x and 3.x have the same list of processors. Only 1.x has a method to add one. */
function addProcessor(provider: object): void {
  const { _activeSpanProcessor, activeSpanProcessor = _activeSpanProcessor, addSpanProcessor } = fieldsOf(provider);
  const { _spanProcessors: processors } = fieldsOf(activeSpanProcessor);
  if (Array.isArray(processors)) {
    // Our processor is first in the list, because some processors change the attributes of ended spans.
    if (!processors.some(isOurs)) processors.unshift(createProcessor());
  } else if (typeof addSpanProcessor === 'function') {
    Reflect.apply(addSpanProcessor, provider, [createProcessor()]);
  } else {
    diagnostics.debug(`${PLACE}: the tracer provider has no list of span processors; its spans are not recorded.`);
  }
}

function isOurs(processor: object): boolean {
  return SPAN_RECORDER in processor || SPAN_RECORDER in fieldsOf(fieldsOf(processor)._exporter);
}

/** Loads `runspan/otel` synchronously, so that the first span is recorded, and only if the application has a provider. */
function createProcessor(): object {
  const { createRequire, registerHooks } = nodeModule('node:module') as unknown as ModuleLoader;
  const hooks = registerHooks?.({ resolve });
  try {
    const { RunSpanProcessor } = createRequire(import.meta.url)('runspan/otel');
    return Object.assign(new RunSpanProcessor(), { flushTimeoutMs: FLUSH_TIMEOUT_MS });
  } finally {
    hooks?.deregister();
  }
}

/** The copy of `npx runspan dev` uses the application's `@opentelemetry/api`, because npx installs no optional peers. */
const resolve: NonNullable<ModuleHooks['resolve']> = (specifier, context, nextResolve) => {
  try {
    return nextResolve(specifier, context);
  } catch (thrown) {
    if (specifier !== '@opentelemetry/api') throw thrown;
    // A program that `-e` contains has no file. The name of a file in the working directory stands for it.
    const parentURL = nodeModule('node:url').pathToFileURL(process.argv[1] ?? 'program').href;
    return nextResolve(specifier, { ...context, parentURL });
  }
};
