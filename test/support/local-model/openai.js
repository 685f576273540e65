// OpenAI's routes. Beside the names of models that `service.js` lists:
//
//   refuse          a refusal
//   fail-response   a response that has failed
import { responseAnswer, responseEvents } from './openai-responses.js';
import { served } from './service.js';
import { answerTo, sampleOf, tokensOf, wordsOf } from './text.js';

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
    path: /\/images\/(generations|edits|variations)$/,
    answer: (request) => served(request, openai, imagesAnswer, imageEvents),
  },
];

/** 2026-01-01, so that answers are always the same. */
const CREATED = 1_767_225_600;
/** A one-pixel PNG. */
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
  const refused = body.model === 'refuse';
  const text =
    answerTo(body.messages, body.response_format?.json_schema?.schema) + (index === 0 ? '' : ` (${index + 1})`);
  const content = refused || calls.length > 0 ? null : text;
  const message = { role: 'assistant', content, refusal: refused ? 'I cannot help with that.' : null };
  if (calls.length > 0) message.tool_calls = calls;
  if (body.reasoning_effort !== undefined) message.reasoning_content = 'Let me think.';
  if (body.modalities?.includes('audio')) {
    message.audio = { id: 'audio_local', data: PIXEL, transcript: text, expires_at: CREATED };
    message.content = null;
  }
  const tokens = wordsOf(message.content ?? '').map((token) => ({
    token,
    logprob: -0.5,
    bytes: null,
    top_logprobs: [],
  }));
  const logprobs = body.logprobs ? { content: tokens, refusal: null } : null;
  return { index, message, logprobs, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' };
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
  const prompt = tokensOf(body.messages.map(({ content }) => content));
  const completion = tokensOf(
    choices.map(({ message }) => message.content ?? message.refusal ?? JSON.stringify(message.tool_calls)),
  );
  const reasoning = body.reasoning_effort === undefined ? 0 : 3;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion + reasoning,
    total_tokens: prompt + completion + reasoning,
    // In a longer conversation, all messages except the last come from the cache.
    prompt_tokens_details: {
      cached_tokens: tokensOf(body.messages.slice(0, -1).map(({ content }) => content)),
      audio_tokens: 0,
    },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 },
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
function choiceDeltas({ index, message, logprobs, finish_reason }) {
  const { role, content, refusal, tool_calls = [], reasoning_content, audio } = message;
  const deltas = [{ role, content: content === null ? null : '', refusal: null }];
  if (reasoning_content !== undefined)
    deltas.push(...piecesOf(reasoning_content).map((piece) => ({ reasoning_content: piece })));
  deltas.push(...piecesOf(content ?? '').map((piece) => ({ content: piece })));
  deltas.push(...piecesOf(refusal ?? '').map((piece) => ({ refusal: piece })));
  if (audio !== undefined)
    deltas.push(
      { audio: { id: audio.id, transcript: audio.transcript } },
      { audio: { data: audio.data.slice(0, 40) } },
      { audio: { data: audio.data.slice(40), expires_at: audio.expires_at } },
    );
  for (const [at, { id, type, function: fn }] of tool_calls.entries()) {
    const half = Math.ceil(fn.arguments.length / 2);
    deltas.push({ tool_calls: [{ index: at, id, type, function: { name: fn.name, arguments: '' } }] });
    deltas.push({ tool_calls: [{ index: at, function: { arguments: fn.arguments.slice(0, half) } }] });
    deltas.push({ tool_calls: [{ index: at, function: { arguments: fn.arguments.slice(half) } }] });
  }
  const tokens = [...(logprobs?.content ?? [])];
  const choices = deltas.map((delta) => ({
    index,
    delta,
    logprobs:
      'content' in delta && delta.content && tokens.length > 0 ? { content: [tokens.shift()], refusal: null } : null,
    finish_reason: null,
  }));
  return [...choices, { index, delta: {}, logprobs: null, finish_reason }];
}

/** Splits text into words, each followed by its space. */
function piecesOf(text) {
  return text.match(/\S+\s*/g) ?? [];
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
