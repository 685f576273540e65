import { shared } from '../../base/shared.ts';
import { replaceMethod, restoreMethods } from '../../instrument/methods.ts';
import type { Method } from '../../instrument/results/observer.ts';
import { shapedLike, tracedBy } from '../../instrument/traceable.ts';
import { fieldsOf } from '../../payload/fields.ts';
import { fromHeaders, type HeadersLike } from '../../run/propagation/propagation.ts';
import type { CallOptions } from '../../run/run-options.ts';
import { withRun } from '../../run/start-run.ts';
import { isRecordedRequest, planOf } from './requests.ts';

/** Traces the request handlers of a `Server`, or of its prototype, that are registered from now on. */
export function traceServer(place: string, server: object, options: CallOptions = {}): void {
  if (!traced.has(server)) traced.set(server, options);
  replaceMethod(place, server, 'setRequestHandler', (original) =>
    shapedLike(function (this: unknown, kind: unknown, ...rest: unknown[]): unknown {
      const args = rest.map((arg) => (typeof arg === 'function' ? tracedHandler(arg as Method, server) : arg));
      return Reflect.apply(original, this, [kind, ...args]);
    }, original),
  );
}

/** The handlers that a server has already registered are then no longer traced either. */
export function untraceServer(place: string, server: object): void {
  traced.delete(server);
  restoreMethods(place, server);
}

/** The options of the traced servers. After `unwrapMCP`, they may change. */
const traced: WeakMap<object, CallOptions> = shared('mcpServers', () => new WeakMap());

/** Handlers that are traced. With `runspan/register` and `wrapMCP`, a server gets each handler twice. */
const handlers: WeakSet<object> = shared('mcpHandlers', () => new WeakSet());

/**
 * Runs the handler of a tool, resource or prompt below the caller's run. That run contains the arguments and the result.
 * If the caller sends none, the request gets a run here.
 */
function tracedHandler(handler: Method, server: object): Method {
  if (handlers.has(handler)) return handler;
  const wrapper = function (this: unknown, ...args: unknown[]): unknown {
    const { method, params } = fieldsOf(args[0]);
    const request = { method, params };
    const options = traced.get(server);
    if (options === undefined || !isRecordedRequest(request)) return Reflect.apply(handler, this, args);
    const caller = fromHeaders(fieldsOf(fieldsOf(params)._meta) as HeadersLike);
    if (caller !== undefined) return withRun(caller, () => Reflect.apply(handler, this, args));
    const context = fieldsOf(args[1]);
    const plan = planOf(request, options, fieldsOf(context.mcpReq ?? context));
    return Reflect.apply(tracedBy(plan, handler), this, args);
  };
  handlers.add(wrapper);
  return wrapper;
}
