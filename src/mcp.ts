/** Traces clients and servers of the Model Context Protocol. @packageDocumentation */
import './runspan.ts';

export { type McpLike, wrapMCP } from './integrations/mcp/wrap.ts';
