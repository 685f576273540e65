import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { isLoopback } from '../../config/checker.ts';
import { replaceMethod } from '../../instrument/methods.ts';
import type { Method } from '../../instrument/results/observer.ts';
import { shapedLike, tracedBy } from '../../instrument/traceable.ts';
import { type Fields, fieldsOf, isFields, isPlainObject, textOf } from '../../payload/fields.ts';
import { currentContext, enteredContext } from '../../run/context/current.ts';
import { sinkBeside } from '../../run/context/inherited.ts';
import { headersToAdd } from '../../run/propagation/propagation.ts';
import type { CallOptions } from '../../run/run-options.ts';
import type { RunSink } from '../../run/sink.ts';
import { isRecordedRequest, type McpRequest, planOf } from './requests.ts';

/** The methods that take the parameters of a request. `request` takes the request itself. */
const METHODS = {
  callTool: 'tools/call',
  readResource: 'resources/read',
  getPrompt: 'prompts/get',
  request: undefined,
};

export function traceClient(place: string, client: object, options: CallOptions = {}): void {
  for (const [name, method] of Object.entries(METHODS)) {
    replaceMethod(place, client, name, (original) => tracedMethod(place, original, method, options));
  }
}

/** Parameters of calls that have a run, and the ids of the runs. `callTool` and the other methods pass them to `request`. */
const sent: WeakMap<object, string | undefined> = shared('mcpParams', () => new WeakMap());

/** Whether the parameters belong to a call that already has a run. */
function isSent(params: unknown): boolean {
  return isFields(params) && sent.has(params) && sent.get(params) === enteredContext()?.id;
}

function tracedMethod(place: string, original: Method, method: string | undefined, options: CallOptions): Method {
  return shapedLike(function (this: unknown, first: unknown, ...rest: unknown[]): unknown {
    const call = guard(place, () => {
      const { method: requested, params } = fieldsOf(first);
      const request = method === undefined ? { method: requested, params } : { method, params: first };
      if (!isRecordedRequest(request) || isSent(request.params)) return undefined;
      // The options follow the schema of the result in some versions.
      const own = rest.map(fieldsOf).find(({ signal }) => signal !== undefined) ?? {};
      return { request, plan: planOf(request, options, own, serverNameOf(this)) };
    });
    if (call === undefined) return Reflect.apply(original, this, [first, ...rest]);
    const send = (): unknown => {
      const params = guard(place, () => paramsToSend(this, call.request)) ?? call.request.params;
      const changed = method === undefined ? { ...fieldsOf(first), params } : params;
      return Reflect.apply(original, this, [changed, ...rest]);
    };
    return tracedBy(call.plan, send)();
  }, original);
}

function serverNameOf(client: unknown): string | undefined {
  const { getServerVersion } = fieldsOf(client);
  if (typeof getServerVersion !== 'function') return undefined;
  return textOf(fieldsOf(Reflect.apply(getServerVersion, client, [])).name);
}

/** Returns a copy of the parameters, with the current run in `_meta` if the server may receive it. */
function paramsToSend(client: unknown, { params }: McpRequest): unknown {
  const context = currentContext();
  const sink = sinkBeside(context);
  if (sink === undefined || !isFields(params)) return params;
  const { _meta: meta = {} } = params;
  const isPlain = isPlainObject(params);
  const isAllowed = isPlain && isPlainObject(meta) && mayReceive(fieldsOf(client).transport, sink);
  const added = isAllowed ? headersToAdd(context, sink, new Set(Object.keys(meta))) : [];
  // Instances of a class are sent unchanged.
  const copy: Fields = isPlain ? { ...params } : params;
  if (added.length > 0) copy._meta = { ...(meta as Fields), ...Object.fromEntries(added) };
  sent.set(copy, context?.id);
  return copy;
}

/** Properties of the transports to a child process and to a server in this process. */
const LOCAL = ['pid', '_otherTransport'];

/** Whether the server runs on this machine, or `propagateTo` lists its origin. Transports have no public address. */
function mayReceive(transport: unknown, { capture }: RunSink): boolean {
  const { hostname, origin } = fieldsOf(fieldsOf(transport)._url);
  if (typeof hostname !== 'string') return LOCAL.some((key) => key in fieldsOf(transport));
  return isLoopback(hostname) || capture.propagateTo?.has(String(origin)) === true;
}
