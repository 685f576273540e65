import { guard } from '../../base/guard.ts';
import { RunspanCallbackHandler } from '../../integrations/langchain/handler.ts';
import { duplicateTracer, plainClients, tracer } from '../../integrations/langchain/tracer.ts';
import { type Fields, fieldsOf } from '../../payload/fields.ts';
import { currentContext } from '../../run/context/current.ts';
import { sinkOf } from '../../run/context/inherited.ts';
import { areRunsMeasured } from '../../run/run-meters.ts';
import { currentSink } from '../../run/sink.ts';
import { type Instrumentation, isLoaded, patchModule } from '../module-hooks.ts';

const CALLBACKS = '@langchain/core/dist/callbacks/manager';
/** The langsmith modules that contain `traceable`, before version 0.12 and since version 0.12. */
const TRACEABLE = ['langsmith/dist/traceable', 'langsmith/lib/traceable'];

/** Matches the `user-agent` header of most LangChain models. */
export const USER_AGENT: RegExp = /langchain-?js/;

interface CallbackManager {
  readonly handlers: readonly { readonly name: string; readonly client?: object }[];
  addHandler(handler: object, isInherited: boolean): void;
  removeHandler(handler: object): void;
}

/** Adds a callback handler to each LangChain and LangGraph call, as if the application had passed one. */
export const langchain: Instrumentation = {
  name: 'langchain',
  start() {
    patchModule({ module: CALLBACKS, sentWith: { header: 'user-agent', value: USER_AGENT }, patch });
    for (const module of TRACEABLE) patchModule({ module, patch: keepTracer });
  },
};

let isStopped = false;

/** Returns whether this instrumentation replaces LangChain's own tracer. */
export function isTracerReplaced(): boolean {
  return isLoaded(CALLBACKS) && !isStopped;
}

/**
 * Keeps LangChain's own tracer if langsmith's `traceable` is used. Only langsmith knows the parents of its runs, so
 * `traceable` and the tracer must work together.
 */
function keepTracer(): void {
  isStopped = duplicateTracer() !== undefined;
}

function withoutTracer(manager: CallbackManager, isDuplicate = true): CallbackManager {
  for (const handler of manager.handlers) {
    if (handler.name !== 'langchain_tracer') continue;
    if (isDuplicate || (handler.client && plainClients.has(handler.client))) manager.removeHandler(handler);
  }
  return manager;
}

/** LangChain calls `_configureSync` at the start of each step to collect the callback handlers. */
function patch({ CallbackManager }: Fields): void {
  const { _configureSync: original } = fieldsOf(CallbackManager);
  if (typeof original !== 'function') throw new Error('this version of @langchain/core is unknown');
  const configure = original as (...args: unknown[]) => CallbackManager | undefined;
  let ours: RunspanCallbackHandler | undefined;
  let isDuplicate = false;
  const withOurs = (configured: CallbackManager | undefined, self: unknown, args: unknown[]) => {
    const context = currentContext();
    const isUnsampled = context?.sampled === false && (!areRunsMeasured() || sinkOf(context) === undefined);
    // Nobody sends a step that is off or left out by sampling to the endpoint, not even LangChain's own tracer.
    if (isUnsampled && configured && duplicateTracer() !== undefined) return withoutTracer(configured);
    if (isUnsampled || isStopped || currentSink() === undefined) return configured;
    if (ours === undefined) {
      isDuplicate = duplicateTracer() !== undefined;
      ours = new RunspanCallbackHandler();
    }
    // If there are no handlers, LangChain creates no manager.
    const manager = configured ?? (Reflect.apply(configure, self, [[ours], ...args.slice(1)]) as CallbackManager);
    const { name } = ours;
    if (!manager.handlers.some((handler) => handler.name === name)) manager.addHandler(ours, true);
    return withoutTracer(manager, isDuplicate);
  };
  fieldsOf(CallbackManager)._configureSync = function (this: unknown, ...args: unknown[]): CallbackManager | undefined {
    const configured = Reflect.apply(configure, this, args);
    return guard('runspan/register langchain', () => withOurs(configured, this, args)) ?? configured;
  };
  tracer.isRemoved = true;
}
