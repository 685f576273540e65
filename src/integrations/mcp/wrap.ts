import { guard } from '../../base/guard.ts';
import { fieldsOf } from '../../payload/fields.ts';
import { preloadDelivery } from '../../run/sink.ts';
import { warnUntraced } from '../warn-untraced.ts';
import { traceClient } from './client.ts';
import { traceServer } from './server.ts';

/** The part of a `Client`, a `Server` or an `McpServer` that tracing requires. */
export type McpLike =
  | { callTool(...args: never[]): unknown }
  | { setRequestHandler(...args: never[]): unknown }
  | { readonly server: { setRequestHandler(...args: never[]): unknown } };

/**
 * Traces a client or a server of the Model Context Protocol: a `Client`, `Server` or `McpServer` of
 * `@modelcontextprotocol/sdk`, `@modelcontextprotocol/client` or `@modelcontextprotocol/server`. Changes the object in
 * place and returns it.
 *
 * Each tool call of a client becomes a `tool` run below the current run, and each read of a resource or prompt a `chain`
 * run. The client sends the run to a server that it has started itself, that is on a loopback address, or whose origin
 * `propagateTo` lists. On a server, tools, resources and prompts run below the run that the caller has sent, or in a run
 * of their own. Wrap a server before you register its tools. Wrapping an object again has no effect.
 *
 * If the value is no such object, `wrapMCP` logs a warning and returns the value unchanged.
 */
export function wrapMCP<Side extends McpLike>(side: Side): Side {
  preloadDelivery();
  guard('wrapMCP', () => {
    const { callTool, server = side } = fieldsOf(side);
    if (typeof callTool === 'function') traceClient('wrapMCP', side);
    else if (typeof fieldsOf(server).setRequestHandler === 'function') traceServer('wrapMCP', server as object);
    else warnUntraced('wrapMCP(side)', 'a client or server of the Model Context Protocol', side);
  });
  return side;
}
