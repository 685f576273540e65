import { guard } from '../../base/guard.ts';
import { replaceMethod } from '../../instrument/methods.ts';
import { RunspanBridge } from '../../integrations/mastra/bridge.ts';
import { type Fields, fieldsOf } from '../../payload/fields.ts';
import { type Instrumentation, patchModule } from '../module-hooks.ts';

const PLACE = 'runspan/register mastra';

/** An instance of a configuration of Mastra's `Observability`. */
interface Instance {
  getBridge(): object | undefined;
  getExporters(): readonly { readonly name: string }[];
  registerExporter(exporter: object): void;
}

/**
 * Gives a bridge to each configuration of Mastra's `Observability` that has none. With Mastra's bridge to OpenTelemetry, a
 * span processor records the spans.
 */
export const mastra: Instrumentation = {
  name: 'mastra',
  start: () => patchModule({ module: '@mastra/observability/dist/index', patch }),
};

function patch({ BaseObservabilityInstance }: Fields): void {
  const prototype = fieldsOf(fieldsOf(BaseObservabilityInstance).prototype);
  const bridges = new WeakMap<object, object>();
  const add = (instance: Instance): void => {
    if (bridges.has(instance)) return;
    const made = new RunspanBridge();
    const own = instance.getExporters().find((one) => one.name === made.name && 'createSpan' in one);
    bridges.set(instance, own ?? made);
    // As a bridge that is set later, it gets no events.
    if (instance.getBridge() === made) instance.registerExporter(made);
  };
  replaceMethod(PLACE, prototype, 'getBridge', (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      return Reflect.apply(method, this, args) ?? bridges.get(this as object);
    };
  });
  replaceMethod(PLACE, prototype, 'startSpan', (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      guard(PLACE, () => add(this as Instance));
      return Reflect.apply(method, this, args);
    };
  });
}
