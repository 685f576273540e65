// OpenAI's routes.
import { responseAnswer, responseEvents } from './openai-responses.js';
import { served } from './service.js';
import { answerTo, sampleOf, tokensOf } from './text.js';

export const openaiRoutes = [
  {
    method: 'POST',
    path: /\/chat\/completions$/,
    answer: (request) => served(request, openai, chatAnswer, chatEvents),
  },
  {
    method: 'POST',
    path: /\/responses$/,
    answer: (request) => served(request, openai, responseAnswer, (body) => responseEvents(responseAnswer(body))),
  },
  { method: 'POST', path: /\/completions$/, answer: (request) => served(request, openai, textAnswer, textEvents) },
  { method: 'POST', path: /\/embeddings$/, answer: (request) => served(request, openai, embeddingsAnswer) },
  {
    method: 'POST',
    path: /\/images\/generations$/,
    answer: (request) => served(request, openai, imagesAnswer, imageEvents),
  },
];

/** 2026-01-01, so that answers are always the same. */
const CREATED = 1_767_225_600;
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const data = (value) => `data: ${JSON.stringify(value)}\n\n`;
const DONE = 'data: [DONE]\n\n';

const openai = {
  errorOf: (status) => ({
    error: { message: `asked to fail with ${status}`, type: 'local_error', param: null, code: `local_${status}` },
  }),
  errorEvent: data({ error: { message: 'the model is overloaded' } }),
  malformedEvent: 'data: {"choices": [\n\n',
  eventsBeforeFailure: 3,
};

function chatAnswer(body) {
  const choices = Array.from({ length: body.n ?? 1 }, (_, index) => chatChoice(body, index));
  return {
    ...chatHead(body, 'chat.completion'),
    choices,
    usage: chatUsage(body, choices),
    system_fingerprint: 'fp_local',
  };
}

function chatHead({ model }, object) {
  return { id: 'chatcmpl-local', object, created: CREATED, model: `${model}-2026-01-01` };
}

function chatChoice(body, index) {
  const calls = toolCalls(body);
  const text =
    answerTo(body.messages, body.response_format?.json_schema?.schema) + (index === 0 ? '' : ` (${index + 1})`);
  const message = { role: 'assistant', content: calls.length > 0 ? null : text, refusal: null };
  if (calls.length > 0) message.tool_calls = calls;
  return { index, message, logprobs: null, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' };
}

/** Calls the first tool, or all tools if the question contains "all". Calls none once a tool has answered. */
function toolCalls({ tools = [], tool_choice, messages }) {
  const last = messages.at(-1);
  if (tool_choice === 'none' || last?.role !== 'user') return [];
  const asked = /\ball\b/.test(String(last.content)) ? tools : tools.slice(0, 1);
  return asked.map(({ function: { name, parameters } }, index) => ({
    id: `call_${index + 1}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(sampleOf(parameters, String(last.content))) },
  }));
}

function chatUsage(body, choices) {
  const prompt_tokens = tokensOf(body.messages.map(({ content }) => content));
  const completion_tokens = tokensOf(
    choices.map(({ message }) => message.content ?? JSON.stringify(message.tool_calls)),
  );
  // In a longer conversation, all messages except the last come from the cache.
  const cached_tokens = tokensOf(body.messages.slice(0, -1).map(({ content }) => content));
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

function chatEvents(body) {
  const { choices, usage, system_fingerprint } = chatAnswer(body);
  const withUsage = body.stream_options?.include_usage === true;
  const chunk = (fields) =>
    data({
      ...chatHead(body, 'chat.completion.chunk'),
      system_fingerprint,
      ...(withUsage && { usage: null }),
      ...fields,
    });
  const deltas = choices.map(choiceDeltas);
  const longest = Math.max(...deltas.map(({ length }) => length));
  const events = Array.from({ length: longest }, (_, at) => deltas.flatMap((own) => own.slice(at, at + 1)))
    .flat()
    .map((choice) => chunk({ choices: [choice] }));
  if (withUsage) events.push(chunk({ choices: [], usage }));
  return [...events, DONE];
}

/** Splits text into words, and arguments into halves. */
function choiceDeltas({ index, message, finish_reason }) {
  const { role, content, tool_calls = [] } = message;
  const deltas = [{ role, content: content === null ? null : '', refusal: null }];
  // Each word is followed by its space.
  deltas.push(...(content?.match(/\S+\s*/g) ?? []).map((piece) => ({ content: piece })));
  for (const [at, { id, type, function: fn }] of tool_calls.entries()) {
    const half = Math.ceil(fn.arguments.length / 2);
    deltas.push({ tool_calls: [{ index: at, id, type, function: { name: fn.name, arguments: '' } }] });
    deltas.push({ tool_calls: [{ index: at, function: { arguments: fn.arguments.slice(0, half) } }] });
    deltas.push({ tool_calls: [{ index: at, function: { arguments: fn.arguments.slice(half) } }] });
  }
  const choices = deltas.map((delta) => ({ index, delta, logprobs: null, finish_reason: null }));
  return [...choices, { index, delta: {}, logprobs: null, finish_reason }];
}

function textAnswer(body) {
  const text = ` You said: ${body.prompt}`;
  const usage = {
    prompt_tokens: tokensOf([body.prompt]),
    completion_tokens: tokensOf([text]),
    total_tokens: tokensOf([body.prompt, text]),
  };
  return { ...textHead(body), choices: [{ index: 0, text, logprobs: null, finish_reason: 'stop' }], usage };
}

function textHead({ model }) {
  return { id: 'cmpl-local', object: 'text_completion', created: CREATED, model };
}

function textEvents(body) {
  const [{ text }] = textAnswer(body).choices;
  const pieces = text.match(/\s*\S+/g) ?? [];
  const choices = pieces.map((piece, at) => ({
    index: 0,
    text: piece,
    logprobs: null,
    finish_reason: at === pieces.length - 1 ? 'stop' : null,
  }));
  return [...choices.map((choice) => data({ ...textHead(body), choices: [choice] })), DONE];
}

function embeddingsAnswer({ input, model, dimensions = 8, encoding_format = 'float' }) {
  const inputs = Array.isArray(input) ? input : [input];
  const vectors = inputs.map((text) =>
    Float32Array.from({ length: dimensions }, (_, at) => String(text).length / (at + 1)),
  );
  const encoded = (vector) =>
    encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
  const prompt_tokens = tokensOf(inputs);
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: encoded(vector) })),
    model,
    usage: { prompt_tokens, total_tokens: prompt_tokens },
  };
}

const IMAGE_USAGE = {
  input_tokens: 5,
  output_tokens: 100,
  total_tokens: 105,
  input_tokens_details: { text_tokens: 5, image_tokens: 0 },
};

function imagesAnswer({ n = 1 }) {
  const data = Array.from({ length: Number(n) }, () => ({ b64_json: PIXEL }));
  return { created: CREATED, output_format: 'png', quality: 'low', size: '1024x1024', data, usage: IMAGE_USAGE };
}

function imageEvents() {
  const image = { created_at: CREATED, output_format: 'png', quality: 'low', size: '1024x1024', b64_json: PIXEL };
  return [
    data({ type: 'image_generation.partial_image', partial_image_index: 0, ...image }),
    data({ type: 'image_generation.completed', ...image, usage: IMAGE_USAGE }),
  ];
}
