import { shared } from '../../base/shared.ts';
import { replaceMethod } from '../../instrument/methods.ts';
import type { Method } from '../../instrument/results/observer.ts';
import { shapedLike, tracedBy } from '../../instrument/traceable.ts';
import { fieldsOf } from '../../payload/fields.ts';
import { fromHeaders, type HeadersLike } from '../../run/propagation/propagation.ts';
import { withRun } from '../../run/start-run.ts';
import { isRecordedRequest, planOf } from './requests.ts';

/** Traces the request handlers of a `Server`, or of its prototype, that are registered from now on. */
export function traceServer(place: string, server: object): void {
  replaceMethod(place, server, 'setRequestHandler', (original) =>
    shapedLike(function (this: unknown, kind: unknown, ...rest: unknown[]): unknown {
      const traced = rest.map((arg) => (typeof arg === 'function' ? tracedHandler(arg as Method) : arg));
      return Reflect.apply(original, this, [kind, ...traced]);
    }, original),
  );
}

/** Handlers that are traced. With `runspan/register` and `wrapMCP`, a server gets each handler twice. */
const handlers: WeakSet<object> = shared('mcpHandlers', () => new WeakSet());

/**
 * Runs the handler of a tool, resource or prompt below the caller's run. That run contains the arguments and the result.
 * If the caller sends none, the request gets a run here.
 */
function tracedHandler(handler: Method): Method {
  if (handlers.has(handler)) return handler;
  const traced = function (this: unknown, ...args: unknown[]): unknown {
    const { method, params } = fieldsOf(args[0]);
    const request = { method, params };
    if (!isRecordedRequest(request)) return Reflect.apply(handler, this, args);
    const caller = fromHeaders(fieldsOf(fieldsOf(params)._meta) as HeadersLike);
    if (caller !== undefined) return withRun(caller, () => Reflect.apply(handler, this, args));
    const context = fieldsOf(args[1]);
    return Reflect.apply(tracedBy(planOf(request, fieldsOf(context.mcpReq ?? context)), handler), this, args);
  };
  handlers.add(traced);
  return traced;
}
