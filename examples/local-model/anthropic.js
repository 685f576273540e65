import { once } from 'node:events';

/**
 * Speaks `POST /v1/messages` of Anthropic's interface, plain and streamed: https://docs.claude.com/en/api/messages
 * And `POST /v1/complete`, which came before it.
 *
 * Answers are made of the request alone, so that the same question always has the same answer: what was asked is said
 * again; with `tools` the first of them is used; with `thinking` there is a thought before; documents are cited. A token
 * is a word. A model of one of these names fails instead:
 *
 * - `fail-500`, `fail-429`, `fail-400`: this status; `retry`: 429 on the first attempt of the SDK alone
 * - `fail-mid-stream`: an `error` event within the answer; `malformed-sse`: an event that is no JSON
 * - `cut-mid-stream`: the connection ends within the answer; `hang-mid-stream`: it stays open, and nothing follows
 * - `hang`: nothing is answered
 */
export async function answerAnthropic(request, response, bodyText) {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (request.method !== 'POST' || !['/v1/messages', '/v1/complete'].includes(pathname)) return false;
  const body = JSON.parse(bodyText);
  response.setHeader('request-id', `req_${wordsIn(bodyText)}`);
  const status = failureOf(body.model, request.headers);
  if (status !== undefined) fail(response, status);
  else if (body.model === 'hang') await once(response, 'close');
  else if (pathname === '/v1/complete') complete(response, body);
  else if (body.stream === true) await stream(response, messageFor(body));
  else sendJson(response, 200, messageFor(body));
  return true;
}

const FAILURES = { 400: 'invalid_request_error', 429: 'rate_limit_error', 500: 'api_error' };

function failureOf(model, headers) {
  if (model === 'retry') return headers['x-stainless-retry-count'] === '0' ? 429 : undefined;
  const [, status] = /^fail-(\d+)$/.exec(model) ?? [];
  return status;
}

function fail(response, status) {
  // Otherwise the SDK waits half a second before it tries again.
  response.setHeader('retry-after-ms', '1');
  sendJson(response, Number(status), errorOf(FAILURES[status]));
}

function errorOf(type) {
  return { type: 'error', error: { type, message: 'The model was asked to fail.' } };
}

function sendJson(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
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
  const blocks = blocksOf(messages.at(-1));
  const result = blocks.find(({ type }) => type === 'tool_result');
  if (result !== undefined) return [{ type: 'text', text: `The tool said: ${textOf(result.content)}` }];
  const document = blocks.find(({ type, citations }) => type === 'document' && citations?.enabled);
  if (document !== undefined) return [{ type: 'text', text: question, citations: [citationOf(document)] }];
  const [tool] = tools;
  if (tool === undefined) return [{ type: 'text', text: `You said: ${question}` }];
  if (tool.type?.startsWith('web_search')) return searchFor(question);
  return [
    { type: 'text', text: `I use ${tool.name}.` },
    { type: 'tool_use', id: `toolu_${tool.name}`, name: tool.name, input: inputFor(tool.input_schema, question) },
  ];
}

function citationOf({ source, title = null }) {
  const cited_text = source.data ?? textOf(source.content);
  const end_char_index = cited_text.length;
  return {
    type: 'char_location',
    cited_text,
    document_index: 0,
    document_title: title,
    start_char_index: 0,
    end_char_index,
  };
}

/** A tool that the service itself uses. */
function searchFor(query) {
  const id = 'srvtoolu_search';
  const page = {
    type: 'web_search_result',
    url: 'http://localhost/page',
    title: query,
    encrypted_content: '',
    page_age: null,
  };
  return [
    { type: 'server_tool_use', id, name: 'web_search', input: { query } },
    { type: 'web_search_tool_result', tool_use_id: id, content: [page] },
    { type: 'text', text: `There is a page about: ${query}` },
  ];
}

/** Text properties are the question, numbers its words. */
function inputFor({ properties = {} }, question) {
  const values = { string: question, number: wordsIn(question), integer: wordsIn(question), boolean: true };
  return Object.fromEntries(Object.entries(properties).map(([key, { type }]) => [key, values[type] ?? null]));
}

/** Cached parts of the system prompt are taken for read from the cache, those of messages for written to it. */
function inputUsage({ system = '', messages }) {
  const read = wordsInCached(blocksOf({ content: system }));
  const created = wordsInCached(messages.flatMap(blocksOf));
  const all =
    wordsIn(textOf(system)) + messages.reduce((total, message) => total + wordsIn(textOf(message.content)), 0);
  return {
    input_tokens: all - read - created,
    cache_creation_input_tokens: created,
    cache_read_input_tokens: read,
  };
}

function outputDetails(content) {
  const thought = content.find(({ type }) => type === 'thinking');
  const searches = content.filter(({ type }) => type === 'server_tool_use').length;
  return {
    ...(thought && { output_tokens_details: { thinking_tokens: wordsIn(thought.thinking) } }),
    ...(searches > 0 && { server_tool_use: { web_search_requests: searches } }),
  };
}

function complete(response, { model, prompt, stream: isStreamed }) {
  const answer = { type: 'completion', id: `compl_${wordsIn(prompt)}`, model, stop_reason: 'stop_sequence' };
  const completion = ` You said:${prompt}`;
  if (!isStreamed) return sendJson(response, 200, { ...answer, completion });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const part of partsOf(completion)) {
    send(response, 'completion', JSON.stringify({ ...answer, completion: part, stop_reason: null }));
  }
  send(response, 'completion', JSON.stringify({ ...answer, completion: '' }));
  response.end();
}

async function stream(response, message) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let sent = 0;
  for (const event of eventsOf(message)) {
    // After four events the answer has begun: message, block, ping, and the first words.
    if (++sent === 5 && (await breakOff(response, message.model))) return;
    send(response, event.type, JSON.stringify(event));
  }
  response.end();
}

async function breakOff(response, model) {
  switch (model) {
    case 'fail-mid-stream':
      send(response, 'error', JSON.stringify(errorOf('overloaded_error')));
      response.end();
      return true;
    case 'malformed-sse':
      send(response, 'content_block_delta', '{"type":"content_block_delta",');
      response.end();
      return true;
    case 'cut-mid-stream':
      response.socket.end();
      return true;
    case 'hang-mid-stream':
      await once(response, 'close');
      return true;
    default:
      return false;
  }
}

function send(response, name, data) {
  response.write(`event: ${name}\ndata: ${data}\n\n`);
}

function* eventsOf({ content, stop_reason, stop_sequence, usage, ...message }) {
  const { output_tokens, output_tokens_details, server_tool_use, ...input } = usage;
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
      return { ...block, text: '', ...(block.citations && { citations: [] }) };
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'tool_use':
    case 'server_tool_use':
      return { ...block, input: {} };
    default:
      return block;
  }
}

function* deltasOf({ type, text, citations = [], thinking, signature, input }) {
  if (type === 'text') {
    for (const part of partsOf(text)) yield { type: 'text_delta', text: part };
    for (const citation of citations) yield { type: 'citations_delta', citation };
  }
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

function blocksOf({ content }) {
  return typeof content === 'string' ? [] : content;
}

function textOf(content = '') {
  if (typeof content === 'string') return content;
  return content
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join(' ');
}

function wordsInCached(blocks) {
  return wordsIn(textOf(blocks.filter(({ cache_control }) => cache_control)));
}

function wordsIn(text) {
  return text.match(/\S+/g)?.length ?? 0;
}
