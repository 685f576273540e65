/** Traces clients and servers of the Model Context Protocol. @packageDocumentation */
import './runspan.ts';

export { type McpLike, unwrapMCP, wrapMCP } from './integrations/mcp/wrap.ts';
