import { guard } from '../../base/guard.ts';
import { restoreMethods } from '../../instrument/methods.ts';
import { fieldsOf } from '../../payload/fields.ts';
import type { WrapOptions } from '../../run/run-options.ts';
import { wrap } from '../wrap.ts';
import { traceClient } from './client.ts';
import { traceServer, untraceServer } from './server.ts';

/** The part of a `Client`, a `Server` or an `McpServer` that tracing requires. */
export type McpLike =
  | { callTool(...args: never[]): unknown }
  | { setRequestHandler(...args: never[]): unknown }
  | { readonly server: { setRequestHandler(...args: never[]): unknown } };

/**
 * Traces a client or a server of the Model Context Protocol in place and returns it. The object is a `Client`, `Server` or
 * `McpServer` of `@modelcontextprotocol/sdk`, `@modelcontextprotocol/client` or `@modelcontextprotocol/server`.
 *
 * Each tool call of a client becomes a `tool` run below the current run, and each read of a resource or prompt a `chain`
 * run. The client sends the run to a server that it has started itself, that is on a loopback address, or whose origin
 * `propagateTo` lists. On a server, tools, resources and prompts run below the run that the caller has sent, or in a run
 * of their own. Wrap a server before you register its tools. Wrapping an object again has no effect. To change the
 * options, call `unwrapMCP` first.
 *
 * If the value is no such object, `wrapMCP` logs a warning and returns the value unchanged.
 */
export function wrapMCP<Side extends McpLike>(side: Side, options?: WrapOptions): Side {
  return wrap('wrapMCP', 'a client or server of the Model Context Protocol', side, options, (checked) => {
    const { callTool, server = side } = fieldsOf(side);
    if (typeof callTool === 'function') traceClient('wrapMCP', side, checked);
    else if (typeof fieldsOf(server).setRequestHandler !== 'function') return undefined;
    else traceServer('wrapMCP', server as object, checked);
    return side;
  });
}

/** Restores the original methods of a wrapped client or server and returns it. Open runs still end normally. */
export function unwrapMCP<Side extends McpLike>(side: Side): Side {
  restoreMethods('unwrapMCP', side);
  guard('unwrapMCP', () => untraceServer('unwrapMCP', (fieldsOf(side).server ?? side) as object));
  return side;
}
