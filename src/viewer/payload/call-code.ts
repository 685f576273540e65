import { exactJson, type Fields, fieldsOf, firstText, isFields, listOf } from '../../payload/fields.ts';
import { type CallPayloads, parametersOf, toolsOf } from '../../services/call-settings.ts';

/** Programs that repeat a model call. They contain no keys. */
export interface CallCode {
  readonly typescript: string;
  readonly curl: string;
}

/** Services whose API is compatible with OpenAI's. */
const COMPATIBLE: ReadonlySet<string> = new Set(
  'openai azure cerebras deepseek fireworks groq litellm mistralai ollama openrouter perplexity together vllm xai'.split(
    ' ',
  ),
);
/** Parameters that belong to OpenAI's Responses API only. */
const RESPONSES = ['max_output_tokens', 'previous_response_id', 'text', 'truncation', 'use_responses_api'];
/** Parameters that the copied request omits, because they start a stream or are not part of the API. */
const DROPPED: ReadonlySet<string> = new Set(['stream', 'stream_options', 'provider_options', 'use_responses_api']);

interface Request {
  readonly method: 'chat.completions.create' | 'responses.create' | 'messages.create';
  readonly body: Fields;
}

/**
 * Returns programs that send a recorded model call again with OpenAI's or Anthropic's SDK, or with curl. Returns
 * undefined if the call was not recorded in the format of either API.
 */
export function callCodeOf(
  call: CallPayloads & { readonly name: string; readonly model?: string },
): CallCode | undefined {
  const request = requestOf(call);
  if (request === undefined) return undefined;
  const json = exactJson(request.body, 2);
  const note = json.includes('[Attachment ') ? 'Replace "[Attachment …]" with the data of the attachment.' : undefined;
  const isAnthropic = request.method === 'messages.create';
  const [sdk, client, env] = isAnthropic
    ? ['@anthropic-ai/sdk', 'Anthropic', 'ANTHROPIC']
    : ['openai', 'OpenAI', 'OPENAI'];
  const headers = isAnthropic
    ? [`x-api-key: $${env}_API_KEY`, 'anthropic-version: 2023-06-01']
    : [`Authorization: Bearer $${env}_API_KEY`];
  const base = isAnthropic ? 'https://api.anthropic.com' : 'https://api.openai.com/v1';
  const path = isAnthropic ? '/v1/messages' : `/${request.method.replace('.create', '').replace('.', '/')}`;
  return {
    typescript: [
      `import ${client} from '${sdk}';`,
      '',
      ...(note === undefined ? [] : [`// ${note}`]),
      `// The client reads ${env}_API_KEY and ${env}_BASE_URL from the environment.`,
      `const client = new ${client}();`,
      `const response = await client.${request.method}(${json});`,
      'console.log(response);',
      '',
    ].join('\n'),
    curl: [
      ...(note === undefined ? [] : [`# ${note}`]),
      `curl "\${${env}_BASE_URL:-${base}}${path}" \\`,
      ...[...headers, 'content-type: application/json'].map((header) => `  -H "${header}" \\`),
      `  --data-binary @- <<'JSON'`,
      json,
      'JSON',
      '',
    ].join('\n'),
  };
}

function requestOf(call: Parameters<typeof callCodeOf>[0]): Request | undefined {
  const all = parametersOf(call);
  const { model = call.model, ...rest } = all;
  const given = Object.entries(rest).filter(([key]) => !DROPPED.has(key) && !key.startsWith('_'));
  const provider = firstText(fieldsOf(call.extra?.metadata).ls_provider) ?? 'openai';
  const { messages, input, instructions, system } = fieldsOf(call.inputs);
  const asked = listOf(messages ?? input).flat();
  const isNative = asked.every((one) => isFields(one) && firstText(one.role, one.type) !== undefined);
  if (model === undefined || asked.length === 0 || !isNative) return undefined;
  const parameters = { model, ...Object.fromEntries(given), ...(isFields(all.tools) ? {} : ownTools(all, provider)) };
  if (provider === 'anthropic') {
    // Other libraries' messages have tool calls that Anthropic's API does not accept.
    if (asked.some((one) => fieldsOf(one).role === 'tool' || 'tool_calls' in fieldsOf(one))) return undefined;
    const isSystem = (one: unknown): boolean => fieldsOf(one).role === 'system';
    const first = system ?? fieldsOf(asked.find(isSystem)).content;
    const body = { ...parameters, ...(first === undefined ? {} : { system: first }) };
    return { method: 'messages.create', body: { ...body, messages: asked.filter((one) => !isSystem(one)) } };
  }
  if (!/^openai\./.test(call.name) && (!COMPATIBLE.has(provider) || /^mistral\.c/.test(call.name))) return undefined;
  const isItem = (one: unknown): boolean => firstText(fieldsOf(one).role) === undefined;
  if (
    /responses/i.test(call.name) ||
    input !== undefined ||
    RESPONSES.some((key) => key in all) ||
    asked.some(isItem)
  ) {
    const body = { ...parameters, ...(instructions === undefined ? {} : { instructions }), input: asked };
    return { method: 'responses.create', body };
  }
  return { method: 'chat.completions.create', body: { ...parameters, messages: asked } };
}

/** Converts the AI SDK's tools to the provider's format. Returns `{}` if the tools have the provider's own format. */
function ownTools(parameters: Fields, provider: string): Fields {
  if (!listOf(parameters.tools).some((tool) => 'inputSchema' in fieldsOf(tool))) return {};
  const tools = toolsOf(parameters).map(({ name, description, parameters: schema }) =>
    provider === 'anthropic'
      ? { name, description, input_schema: schema }
      : { type: 'function', function: { name, description, parameters: schema } },
  );
  return { tools };
}
