// OpenAI's responses.
import { answerTo, sampleOf, textOf, tokensOf } from './text.js';

export function responseAnswer(body) {
  if (body.background === true && body.stream !== true)
    return { ...responseHead(body), status: 'queued', output: [], usage: null };
  const output = outputOf(body);
  return { ...responseHead(body), status: 'completed', output, usage: usageOf(body, output) };
}

/** Repeats the request's parameters, like the real service. */
function responseHead({ model, instructions = null, tools = [], metadata = {}, background = false }) {
  return {
    id: 'resp_local',
    object: 'response',
    created_at: 1_767_225_600,
    background,
    error: null,
    incomplete_details: null,
    instructions,
    metadata,
    model: `${model}-2026-01-01`,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools,
  };
}

function itemsOf(input) {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : input;
}

function outputOf(body) {
  const items = itemsOf(body.input);
  const reasoning =
    body.reasoning === undefined
      ? []
      : [{ id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me think.' }] }];
  const question = textOf(items.findLast(({ role }) => role === 'user')?.content);
  const tools = (body.tools ?? []).filter(({ type }) => type === 'function');
  if (tools.length > 0 && items.at(-1).role === 'user') {
    const [{ name, parameters }] = tools;
    const call = {
      id: 'fc_1',
      type: 'function_call',
      call_id: 'call_1',
      name,
      arguments: JSON.stringify(sampleOf(parameters, question)),
      status: 'completed',
    };
    return [...reasoning, call];
  }
  const messages = items.map((item) =>
    item.type === 'function_call_output' ? { role: 'tool', content: item.output } : item,
  );
  const text = answerTo(messages, body.text?.format?.schema);
  const part = { type: 'output_text', text, annotations: [] };
  return [...reasoning, { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [part] }];
}

function usageOf(body, output) {
  const items = itemsOf(body.input);
  const input_tokens = tokensOf([
    body.instructions ?? '',
    ...items.map(({ content, output: result }) => content ?? result ?? ''),
  ]);
  const reasoning_tokens = body.reasoning === undefined ? 0 : 3;
  const texts = output.map(
    ({ content, arguments: given }) => content?.map(({ text }) => text).join(' ') ?? given ?? '',
  );
  const output_tokens = tokensOf(texts) + reasoning_tokens;
  return {
    input_tokens,
    input_tokens_details: { cached_tokens: tokensOf([body.instructions ?? '']) },
    output_tokens,
    output_tokens_details: { reasoning_tokens },
    total_tokens: input_tokens + output_tokens,
  };
}
