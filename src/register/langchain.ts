import { guard } from '../base/guard.ts';
import { RunspanCallbackHandler } from '../integrations/langchain/handler.ts';
import { duplicateTracer, setTracerRemoved } from '../integrations/langchain/tracer.ts';
import { type Fields, fieldsOf } from '../payload/fields.ts';
import { currentSink } from '../run/sink.ts';
import { type Instrumentation, patchModule } from './module-hooks.ts';

export const LANGCHAIN = '@langchain/core/dist/callbacks/manager';

/** The object that holds the callback handlers of a step. */
interface CallbackManager {
  readonly handlers: readonly { readonly name: string }[];
  addHandler(handler: object, isInherited: boolean): void;
  removeHandler(handler: object): void;
}

type Configure = (...args: unknown[]) => CallbackManager | undefined;

/** Adds a callback handler to each call of LangChain and LangGraph, as if the application had passed one. */
export const langchain: Instrumentation = {
  name: 'langchain',
  start() {
    patchModule({ module: LANGCHAIN, sentWith: { header: 'user-agent', value: /^langchainjs-/ }, patch });
    return () => {
      isStopped = true;
    };
  },
};

let isStopped = false;

/** LangChain calls `_configureSync` at the start of each step to collect the handlers. */
function patch({ CallbackManager }: Fields): void {
  const { _configureSync: original } = fieldsOf(CallbackManager);
  if (typeof original !== 'function') throw new Error('this version of @langchain/core is unknown');
  const configure = original as Configure;
  let ours: RunspanCallbackHandler | undefined;
  let isDuplicate = false;
  const withOurs = (configured: CallbackManager | undefined, self: unknown, args: unknown[]) => {
    if (currentSink() === undefined || isStopped) return configured;
    if (ours === undefined) {
      isDuplicate = duplicateTracer() !== undefined;
      ours = new RunspanCallbackHandler();
    }
    // Without handlers, LangChain creates no manager.
    const manager = configured ?? (Reflect.apply(configure, self, [[ours], ...args.slice(1)]) as CallbackManager);
    const { name } = ours;
    if (!manager.handlers.some((handler) => handler.name === name)) manager.addHandler(ours, true);
    for (const handler of isDuplicate ? manager.handlers : []) {
      if (handler.name === 'langchain_tracer') manager.removeHandler(handler);
    }
    return manager;
  };
  fieldsOf(CallbackManager)._configureSync = function (this: unknown, ...args: unknown[]): CallbackManager | undefined {
    const configured = Reflect.apply(configure, this, args);
    return guard('runspan/register langchain', () => withOurs(configured, this, args)) ?? configured;
  };
  setTracerRemoved();
}
