// Anthropic's messages route (https://docs.claude.com/en/api/messages). The answer depends only on the request: it
// repeats the question, calls the first of the given `tools`, and thinks first with `thinking`. Each word counts as a
// token.
import { served } from './service.js';

export const anthropicRoutes = [
  { method: 'POST', path: /\/v1\/messages$/, answer: (request) => named(request, messageFor, eventsFor) },
];

const eventOf = (name, value) => `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`;
const errorOf = (type) => ({ type: 'error', error: { type, message: 'The model was asked to fail.' } });
const ERRORS = { 400: 'invalid_request_error', 401: 'authentication_error', 429: 'rate_limit_error' };

const anthropic = {
  errorOf: (status) => errorOf(ERRORS[status] ?? 'api_error'),
  errorEvent: eventOf('error', errorOf('overloaded_error')),
  malformedEvent: 'event: content_block_delta\ndata: {"type":"content_block_delta",\n\n',
  // By then, the answer has begun: message, block, ping, and the first words.
  eventsBeforeFailure: 4,
};

function eventsFor(body) {
  return [...messageEvents(messageFor(body))].map((event) => eventOf(event.type, event));
}

/** The same request always has the same id. */
function named(request, answer, events) {
  const own = served(request, anthropic, answer, events);
  return { ...own, headers: { ...own.headers, 'request-id': `req_${wordsIn(request.text)}` } };
}

function messageFor(body) {
  const content = [...thoughtFor(body), ...answerFor(body)];
  const text = JSON.stringify(content);
  return {
    id: `msg_${wordsIn(JSON.stringify(body.messages))}`,
    type: 'message',
    role: 'assistant',
    model: body.model,
    content,
    stop_reason: content.at(-1).type === 'tool_use' ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { ...inputUsage(body), output_tokens: wordsIn(text), ...outputDetails(content) },
  };
}

function thoughtFor({ thinking, messages }) {
  if (thinking?.type !== 'enabled') return [];
  const thought = `The question has ${wordsIn(questionIn(messages))} words.`;
  return [{ type: 'thinking', thinking: thought, signature: Buffer.from(thought).toString('base64') }];
}

function answerFor({ messages, tools = [] }) {
  const question = questionIn(messages);
  const { content } = messages.at(-1);
  const result = typeof content === 'string' ? undefined : content.find(({ type }) => type === 'tool_result');
  if (result !== undefined) return [{ type: 'text', text: `The tool said: ${textOf(result.content)}` }];
  const [tool] = tools;
  if (tool === undefined) return [{ type: 'text', text: `You said: ${question}` }];
  return [
    { type: 'text', text: `I use ${tool.name}.` },
    { type: 'tool_use', id: `toolu_${tool.name}`, name: tool.name, input: inputFor(tool.input_schema, question) },
  ];
}

/** Text properties contain the question, and number properties its word count. */
function inputFor({ properties = {} }, question) {
  const values = { string: question, number: wordsIn(question), integer: wordsIn(question), boolean: true };
  return Object.fromEntries(Object.entries(properties).map(([key, { type }]) => [key, values[type] ?? null]));
}

function inputUsage({ system = '', messages }) {
  const texts = [system, ...messages.map(({ content }) => content)];
  return { input_tokens: texts.reduce((total, text) => total + wordsIn(textOf(text)), 0) };
}

function outputDetails(content) {
  const thought = content.find(({ type }) => type === 'thinking');
  return thought && { output_tokens_details: { thinking_tokens: wordsIn(thought.thinking) } };
}

function* messageEvents({ content, stop_reason, stop_sequence, usage, ...message }) {
  const { output_tokens, output_tokens_details, ...input } = usage;
  const begun = { content: [], stop_reason: null, stop_sequence: null, usage: { ...input, output_tokens: 1 } };
  yield { type: 'message_start', message: { ...message, ...begun } };
  for (const [index, block] of content.entries()) {
    yield { type: 'content_block_start', index, content_block: emptied(block) };
    if (index === 0) yield { type: 'ping' };
    for (const delta of deltasOf(block)) yield { type: 'content_block_delta', index, delta };
    yield { type: 'content_block_stop', index };
  }
  yield { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage };
  yield { type: 'message_stop' };
}

function emptied(block) {
  switch (block.type) {
    case 'text':
      return { ...block, text: '' };
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'tool_use':
      return { ...block, input: {} };
    default:
      return block;
  }
}

function* deltasOf({ type, text, thinking, signature, input }) {
  if (type === 'text') for (const part of partsOf(text)) yield { type: 'text_delta', text: part };
  if (type === 'thinking') {
    for (const part of partsOf(thinking)) yield { type: 'thinking_delta', thinking: part };
    yield { type: 'signature_delta', signature };
  }
  if (input !== undefined) {
    yield { type: 'input_json_delta', partial_json: '' };
    for (const part of partsOf(JSON.stringify(input))) yield { type: 'input_json_delta', partial_json: part };
  }
}

function partsOf(text) {
  return text.match(/\s*\S+|\s+/g) ?? [];
}

function questionIn(messages) {
  return textOf(messages.findLast(({ role }) => role === 'user')?.content ?? '');
}

function textOf(content = '') {
  if (typeof content === 'string') return content;
  return content
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join(' ');
}

function wordsIn(text) {
  return text.match(/\S+/g)?.length ?? 0;
}
