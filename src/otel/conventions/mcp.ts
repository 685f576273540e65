import { withoutCredentials } from './url.ts';
import { json, text } from './values.ts';
import { type Vocabulary, WHOLE } from './vocabulary.ts';

const METHOD = 'mcp.method.name';

/**
 * OpenTelemetry's conventions for the Model Context Protocol, on both ends of a request:
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 *
 * The arguments and the result of a tool are those of the conventions for generative AI, which may be on the span beside
 * these. `mcp.request.argument` and `mcp.response.value` are Traceloop's.
 */
export const mcp: Vocabulary = {
  name: 'mcp',
  roots: ['mcp'],
  isSpoken: (attributes) => attributes[METHOD] !== undefined,
  kindOf: (attributes) =>
    attributes[METHOD] === 'tools/call' ? { runType: 'tool', nameFrom: 'gen_ai.tool.name' } : { runType: 'chain' },
  inputs: [
    ['gen_ai.tool.call.arguments', WHOLE, json],
    ['mcp.request.argument', WHOLE, json],
    ['gen_ai.prompt.name', 'prompt', text],
    ['mcp.resource.uri', 'uri', withoutCredentials],
  ],
  outputs: [
    ['gen_ai.tool.call.result', WHOLE, json],
    ['mcp.response.value', WHOLE, json],
  ],
  cleaned: new Map([['mcp.resource.uri', withoutCredentials]]),
};
