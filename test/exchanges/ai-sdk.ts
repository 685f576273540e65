// The results of models of the AI SDK, and the parts of their streams: `LanguageModelV1` of major 4, and `LanguageModelV3`.
import { ANSWER, PIXEL } from './exchange.ts';

const usage = { promptTokens: 3, completionTokens: 5 };
const call = { toolCallId: 'call_2', toolName: 'warn' };
const input = '{"q":"a storm"}';
const file = { data: PIXEL, mimeType: 'image/png' };
const finish = { finishReason: { unified: 'stop', raw: 'end' }, usage, response: { id: 'r_1', modelId: 'small-2026' } };
const searched = { toolCallId: '2', toolName: 'web_search', providerExecuted: true };
/** Parts that are recorded as they come. The last type does not exist yet. */
const others = [
  { type: 'tool-result', ...searched, result: { hits: ['Rain'] } },
  { type: 'tool-error', ...searched, error: 'no answer' },
  { type: 'tool-approval-request', approvalId: '1', toolCallId: '1' },
  { type: 'source', sourceType: 'url', id: '1', url: 'https://example.com' },
  { type: 'reasoning-file', mediaType: 'image/png', data: 'AAAA' },
  { type: 'custom', kind: 'openai.compaction' },
  { type: 'weather-map', wind: [1, 2] },
];
const { thought, text } = ANSWER;
const message = {
  ...{ role: 'assistant', content: 'It rains.', reasoning: 'Hm, so.' },
  tool_calls: [{ id: 'call_2', type: 'function', function: { name: 'warn', arguments: input } }],
  files: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }],
  finish_reason: 'stop',
};
const content = [
  { type: 'tool-call', ...call, input },
  { type: 'file', mediaType: 'image/png', data: PIXEL },
  ...others,
];

interface Major {
  readonly title: string;
  readonly result: object;
  readonly stream: readonly object[];
  readonly message: object;
}

export const majors: readonly Major[] = [
  {
    title: 'major 4',
    message,
    result: {
      ...{ text: 'It rains.', reasoning: thought.map((part) => ({ type: 'text', text: part })) },
      toolCalls: [{ toolCallType: 'function', ...call, args: input }],
      files: [file],
      finishReason: 'stop',
      usage,
    },
    stream: [
      ...thought.map((textDelta) => ({ type: 'reasoning', textDelta })),
      ...text.map((textDelta) => ({ type: 'text-delta', textDelta })),
      { type: 'tool-call-delta', argsTextDelta: '{' },
      { type: 'tool-call', ...call, args: input },
      { type: 'file', ...file },
      { type: 'finish', finishReason: 'stop', usage },
    ],
  },
  {
    title: 'later majors',
    message: { ...message, parts: others },
    result: {
      content: [
        ...thought.map((part) => ({ type: 'reasoning', text: part })),
        ...text.map((part) => ({ type: 'text', text: part })),
        ...content,
      ],
      ...finish,
    },
    stream: [
      { type: 'stream-start', warnings: [] },
      ...thought.map((delta) => ({ type: 'reasoning-delta', id: '0', delta })),
      { type: 'text-start', id: '1' },
      ...text.map((delta) => ({ type: 'text-delta', id: '1', delta })),
      { type: 'tool-input-delta', id: '1', delta: '{' },
      ...content,
      { type: 'finish', ...finish },
    ],
  },
];
