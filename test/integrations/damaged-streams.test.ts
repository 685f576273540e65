// What is recorded of streams that services, gateways and networks damage. In each stream, all texts are different words.
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { bodyReader } from '#src/integrations/fetch/body.ts';
import type { Fields } from '#src/payload/fields.ts';
import type { AnswerReader, Fold } from '#src/services/answer.ts';
import { messageCall } from '#src/services/anthropic/calls.ts';
import { conversation } from '#src/services/bedrock/converse.ts';
import { cohereChat } from '#src/services/cohere/calls.ts';
import { geminiGeneration } from '#src/services/gemini/calls.ts';
import { geminiInteraction } from '#src/services/gemini/interactions.ts';
import { mistralConversation } from '#src/services/mistral/calls.ts';
import { ollamaCalls } from '#src/services/ollama/calls.ts';
import { openaiCalls } from '#src/services/openai/calls.ts';
import { randomFrom } from '../faults/random.ts';
import { cases } from '../support/campaign.ts';
import { messageEvents } from '../support/local-model/anthropic.js';
import { responseEvents } from '../support/local-model/openai-responses.js';

// A property takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

interface Answer {
  text: string[];
  thought: string[];
  calls: { id: string; name: string; args: string[] }[];
  unknown: string;
}

interface Format {
  readonly reader: AnswerReader;
  /** The content type of a body. Absent if the recorder gets events from the client. */
  readonly type?: string;
  readonly events: (answer: Answer) => Fields[];
  /** An event that reports an error, and the error that is recorded. */
  readonly error: [event: Fields, text: string];
}

const SSE = { type: 'text/event-stream' };
const nested = { error: { code: 'busy', message: 'too much' } };
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const chunk = (delta: object, more: object = {}): Fields => ({
  ...{ id: 'c', object: 'chat.completion.chunk', model: 'small', choices: [{ index: 0, delta, finish_reason: null }] },
  ...more,
});
const geminiChunk = (part: object): Fields => ({
  candidates: [{ index: 0, content: { role: 'model', parts: [part] } }],
  modelVersion: 'small',
});
/** Streams of the first version have contents instead of steps. Their calls are not streamed in pieces. */
function interactions(kind: 'step' | 'content'): Format {
  const isFirst = kind === 'content';
  const event = (type: string, more: object): Fields => ({ event_type: type, ...more });
  const streamed = (index: number, started: object, deltas: readonly object[]): Fields[] => [
    event(`${kind}.start`, { index, [kind]: started }),
    ...deltas.map((delta) => event(`${kind}.delta`, { index, delta })),
  ];
  const counts = { total_input_tokens: 3, total_output_tokens: 4, total_tokens: 7 };
  return {
    ...SSE,
    reader: geminiInteraction,
    events: ({ text, thought, calls, unknown }) => [
      event('interaction.created', { interaction: { id: 'i', model: 'small', status: 'in_progress' } }),
      ...streamed(0, { type: 'thought' }, [
        ...thought.map((word) => ({ type: 'thought_summary', content: { type: 'text', text: word } })),
        { type: 'thought_signature', signature: 's' },
      ]),
      ...streamed(1, { type: isFirst ? 'text' : 'model_output' }, [
        ...text.map((word) => ({ type: 'text', text: word })),
      ]),
      ...calls.flatMap(({ id, name, args }, at) => {
        const call = { type: 'function_call', id, name, arguments: { q: args.join(' ') } };
        if (isFirst) return streamed(at + 2, { type: 'function_call' }, [call]);
        const deltas = args.map((word) => ({ type: 'arguments_delta', arguments: word }));
        return streamed(at + 2, { ...call, arguments: {} }, deltas);
      }),
      ...streamed(9, { type: 'new', value: unknown }, []),
      event('interaction.completed', { interaction: { id: 'i', status: 'completed', usage: counts } }),
    ],
    error: [event('error', nested), 'busy: too much'],
  };
}
const toolCalls = ({ calls }: Answer) =>
  calls.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: args.join('') } }));

function eventsOfResponse({ text, thought, calls, unknown }: Answer): Fields[] {
  const summary = { type: 'summary_text', text: thought.join(' ') };
  const content = { type: 'output_text', text: text.join(' '), annotations: [] };
  const other = { type: 'new_part', value: unknown };
  const output = [
    { id: 'rs', type: 'reasoning', summary: [summary] },
    { id: 'msg', type: 'message', role: 'assistant', status: 'completed', content: [content, other] },
    ...calls.map(({ id, name, args }, at) => ({
      ...{ id: `fc_${at}`, type: 'function_call', call_id: id, name, arguments: args.join('') },
      status: 'completed',
    })),
  ];
  const counts = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
  const response = { id: 'r', status: 'completed', model: 'small', output, usage: counts };
  return responseEvents(response).map((event) => JSON.parse(event.slice(event.indexOf('{'))));
}

const formats: Readonly<Record<string, Format>> = {
  'OpenAI chat': {
    ...SSE,
    reader: openaiCalls.chat,
    events: ({ text, thought, calls, unknown }) => [
      chunk({ role: 'assistant', content: '', reasoning_content: '', annotations: [{ type: 'new', value: unknown }] }),
      ...thought.map((word) => chunk({ reasoning_content: word })),
      ...text.map((word) => chunk({ content: word })),
      ...calls.flatMap(({ id, name, args }, index) => [
        chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
        ...args.map((word) => chunk({ tool_calls: [{ index, function: { arguments: word } }] })),
      ]),
      chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      chunk({}, { choices: [], usage }),
    ],
    error: [nested, 'busy: too much'],
  },
  'OpenAI responses': {
    ...SSE,
    reader: openaiCalls.response,
    events: eventsOfResponse,
    error: [{ type: 'error', code: 'busy', message: 'too much', param: null }, 'busy: too much'],
  },
  Anthropic: {
    ...SSE,
    reader: messageCall,
    events: ({ text, thought, calls, unknown }) => {
      const content = [
        { type: 'thinking', thinking: thought.join(' '), signature: 's' },
        { type: 'text', text: text.join(' ') },
        ...calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: { q: args.join(' ') } })),
        { type: 'new_block', value: unknown },
      ];
      const head = { id: 'm', type: 'message', role: 'assistant', model: 'small', stop_reason: 'end_turn' };
      return [...messageEvents({ ...head, content, usage: { input_tokens: 3, output_tokens: 4 } })];
    },
    error: [{ type: 'error', error: { type: 'busy', message: 'too much' } }, 'busy: too much'],
  },
  Gemini: {
    ...SSE,
    reader: geminiGeneration,
    events: ({ text, thought, calls, unknown }) => [
      ...thought.map((word) => geminiChunk({ text: word, thought: true })),
      ...text.map((word) => geminiChunk({ text: word })),
      ...calls.flatMap(({ id, name, args }) => [
        geminiChunk({ functionCall: { id, name, willContinue: true } }),
        ...args.map((stringValue) => {
          const partialArgs = [{ jsonPath: '$.list[0].q', stringValue, willContinue: true }];
          return geminiChunk({ functionCall: { partialArgs, willContinue: true } });
        }),
        geminiChunk({ functionCall: {} }),
      ]),
      geminiChunk({ newPart: unknown }),
      { candidates: [{ index: 0, finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 3, totalTokenCount: 7 } },
    ],
    error: [{ error: { code: 503, status: 'BUSY', message: 'too much' } }, 'BUSY: too much'],
  },
  'Gemini interactions': interactions('step'),
  'Gemini interactions of the first version': interactions('content'),
  'Mistral conversations': {
    ...SSE,
    reader: mistralConversation,
    events: ({ text, thought, calls, unknown }) => {
      const output = (content: unknown): Fields => ({
        type: 'message.output.delta',
        output_index: 0,
        id: 'm',
        content,
      });
      return [
        { type: 'conversation.response.started', conversation_id: 'c' },
        ...thought.map((word) => output({ type: 'thinking', thinking: [{ type: 'text', text: word }] })),
        ...text.map(output),
        output({ type: 'new', value: unknown }),
        ...calls.flatMap(({ id, name, args }, at) =>
          args.map((word) => {
            const call = { output_index: at + 1, id: `f${at}`, tool_call_id: id, name, arguments: word };
            return { type: 'function.call.delta', ...call };
          }),
        ),
        { type: 'conversation.response.done', usage },
      ];
    },
    error: [{ type: 'conversation.response.error', code: 3, message: 'too much' }, '3: too much'],
  },
  Cohere: {
    ...SSE,
    reader: cohereChat,
    events: ({ text, thought, calls, unknown }) => {
      const content = (index: number, value: object) => ({ index, delta: { message: { content: value } } });
      const called = (index: number, value: object) => ({ index, delta: { message: { tool_calls: value } } });
      return [
        { type: 'message-start', id: 'c', delta: { message: { role: 'assistant', content: [], tool_calls: [] } } },
        { type: 'content-start', ...content(0, { type: 'thinking', thinking: '' }) },
        ...thought.map((thinking) => ({ type: 'content-delta', ...content(0, { thinking }) })),
        { type: 'content-start', ...content(1, { type: 'text', text: '' }) },
        ...text.map((word) => ({ type: 'content-delta', ...content(1, { text: word }) })),
        ...calls.flatMap(({ id, name, args }, at) => [
          { type: 'tool-call-start', ...called(at, { id, type: 'function', function: { name, arguments: '' } }) },
          ...args.map((word) => ({ type: 'tool-call-delta', ...called(at, { function: { arguments: word } }) })),
        ]),
        { type: 'content-start', ...content(2, { type: 'new', value: unknown }) },
        {
          type: 'message-end',
          delta: { finish_reason: 'COMPLETE', usage: { tokens: { input_tokens: 3, output_tokens: 4 } } },
        },
      ];
    },
    error: [{ type: 'message-end', delta: { finish_reason: 'ERROR', error: 'too much' } }, 'too much'],
  },
  Mistral: {
    ...SSE,
    reader: openaiCalls.chat,
    events: (answer) => [
      chunk({ role: 'assistant', content: '' }),
      ...answer.thought.map((text) => chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] })),
      chunk({ content: [{ type: 'new', value: answer.unknown }] }),
      ...answer.text.map((word) => chunk({ content: word })),
      ...toolCalls(answer).map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
      { ...chunk({}), choices: [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }], usage },
    ],
    error: [{ object: 'error', type: 'busy', message: 'too much' }, 'busy: too much'],
  },
  Ollama: {
    type: 'application/x-ndjson',
    reader: ollamaCalls.chat,
    events: ({ text, thought, calls, unknown }) => {
      const line = (message: object, more: object = { done: false }) => ({
        ...{ model: 'small', created_at: 'now', message: { role: 'assistant', content: '', ...message } },
        ...more,
      });
      const tool_calls = calls.map(({ name, args }) => ({ function: { name, arguments: { q: args.join('') } } }));
      return [
        ...thought.map((thinking) => line({ thinking })),
        ...text.map((content) => line({ content })),
        line({ tool_calls, new: unknown }),
        line({}, { done: true, done_reason: 'stop', prompt_eval_count: 3, eval_count: 4 }),
      ];
    },
    error: [{ error: 'too much' }, 'too much'],
  },
  Bedrock: {
    reader: conversation(),
    events: ({ text, thought, calls, unknown }) => {
      const delta = (contentBlockIndex: number, value: object) => ({
        contentBlockDelta: { contentBlockIndex, delta: value },
      });
      return [
        { messageStart: { role: 'assistant' } },
        ...thought.map((word) => delta(0, { reasoningContent: { text: word } })),
        ...text.map((word) => delta(1, { text: word })),
        ...calls.flatMap(({ id, name, args }, at) => [
          { contentBlockStart: { contentBlockIndex: at + 2, start: { toolUse: { toolUseId: id, name } } } },
          ...args.map((input) => delta(at + 2, { toolUse: { input } })),
        ]),
        delta(9, { newPart: unknown }),
        { messageStop: { stopReason: 'end_turn' } },
        { metadata: { usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } } },
      ];
    },
    error: [nested, 'busy: too much'],
  },
};

function generator(seed: number) {
  const random = randomFrom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  let last = 0;
  // The words have eight characters, like the pieces in which arguments are streamed.
  const word = (): string => `<${String(++last).padStart(5, '0')}é>`;
  const words = (): string[] => Array.from({ length: 1 + below(3) }, word);
  const answer = (): Answer => ({
    text: words(),
    thought: words(),
    calls: Array.from({ length: below(3) }, () => ({ id: word(), name: word(), args: [word(), word()] })),
    unknown: word(),
  });
  return { below, answer, isDrawn: (part: number) => random() < part };
}
type Generator = ReturnType<typeof generator>;

/** Returns what is recorded of a stream: of its bytes, which arrive in pieces, or of events, which the client reuses. */
function recorded({ reader, type }: Format, events: readonly Fields[], { below, isDrawn }: Generator, cut = 0): Fields {
  const isBody = type !== undefined && (cut > 0 || isDrawn(0.7));
  const fold = (isBody ? bodyReader(reader, type) : reader).fold?.() as Fold;
  const prefix = type === SSE.type ? 'data: ' : '';
  const text = events.map((event) => `${prefix}${JSON.stringify(event)}\n\n`).join('');
  const bytes = new TextEncoder().encode(text.slice(0, text.length - cut));
  for (let at = 0; isBody && at < bytes.length && !fold.isComplete; ) {
    const end = at + 1 + below(900);
    fold.add(bytes.subarray(at, end), false);
    at = end;
  }
  for (const event of isBody ? [] : copyOf(events)) {
    if (!fold.isComplete) fold.add(event, false);
    eachObject(event, (object) => Object.keys(object).forEach((key) => void delete object[key]));
  }
  const answer = reader.read(fold.result());
  return JSON.parse(JSON.stringify({ ...answer, error: fold.error ?? answer.error }));
}

/** Calls `change` for each object in a value. */
function eachObject(value: unknown, change: (object: Fields) => void): void {
  if (typeof value !== 'object' || value === null) return;
  for (const item of Object.values(value)) eachObject(item, change);
  if (!Array.isArray(value)) change(value as Fields);
}

const copyOf = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));
const wordsIn = (value: unknown): string[] => (JSON.stringify(value) ?? '').match(/<\d{5}é>/g) ?? [];
const INDEX = /^(index|.*_index|contentBlockIndex)$/;
const KEPT = /^(type|event_type|.*index|contentBlockIndex|jsonPath|done)$/;
const LISTS_KEPT = /^(choices|candidates|parts|tool_calls|partialArgs)$/;

/** Returns an event that says nothing: empty texts, nulls and zeros in the form of another event. */
function blank(event: Fields, { isDrawn }: Generator): Fields {
  const copy = copyOf(event);
  eachObject(copy, (object) => {
    for (const [key, value] of Object.entries(object)) {
      if (KEPT.test(key) || typeof value === 'boolean') continue;
      if (Array.isArray(value)) object[key] = LISTS_KEPT.test(key) ? value : [];
      else if (typeof value !== 'object') object[key] = isDrawn(0.3) ? null : typeof value === 'number' ? 0 : '';
    }
  });
  return copy;
}

const NAMES = /^(id|name|role|model|object|status|(finish|stop)_reason|toolUseId|modelVersion|.*tokens|.*Count)$/i;

/** Adds the names, reasons and counts that a blank event has and another lacks. */
function addNames(event: Fields, empty: Fields): void {
  if ((event.type ?? empty.type) !== empty.type) return;
  for (const [key, value] of Object.entries(empty)) {
    const own = event[key];
    if (own === undefined && NAMES.test(key) && !value) event[key] = value;
    else if (typeof own === 'object' && own !== null && value) addNames(own as Fields, value as Fields);
  }
}

/** Damage that takes nothing away and adds no text. */
function neutral(events: readonly Fields[], g: Generator): Fields[] {
  const damaged = copyOf([...events]);
  for (const event of damaged.slice(1)) {
    for (const [key, value] of Object.entries(event)) {
      if (/^(id|model|object|created|modelVersion)$/.test(key) && value === events[0]?.[key] && g.isDrawn(0.3))
        delete event[key];
    }
    const { output } = (event.response ?? {}) as { output?: unknown[] };
    if (event.type === 'response.completed' && g.isDrawn(0.5)) output?.splice(g.below(output.length));
  }
  return damaged.flatMap((event, at) => {
    const source = events[g.below(at + 1)] as Fields;
    const empty = /"new/.test(JSON.stringify(source)) ? {} : blank(source, g);
    if (g.isDrawn(0.4)) addNames(event, empty);
    return g.isDrawn(0.4) ? [event, empty] : [event];
  });
}

/** Damage after which only the place of a text is unknown. */
function ambiguous(events: readonly Fields[], { below, isDrawn }: Generator): Fields[] {
  const damaged = copyOf([...events]);
  const change = [() => undefined, () => 0, () => below(4)][below(3)] as () => unknown;
  eachObject(damaged, (object) => {
    for (const key of Object.keys(object)) {
      if (INDEX.test(key) && isDrawn(0.8)) object[key] = change();
    }
    const { content } = object;
    if (typeof content === 'string' && isDrawn(0.3)) object.content = content && [{ type: 'text', text: content }];
  });
  return damaged;
}

test.each(Object.entries(formats))(
  'what a damaged stream of %s contains is recorded once',
  (_, format) => {
    const property = (seed: number): void => {
      const g = generator(seed);
      const events = format.events(g.answer());
      const right = recorded(format, events, g);
      const expectWords = (record: Fields, sent: readonly unknown[]): void => {
        expect(wordsIn(record).sort()).toEqual([...new Set(wordsIn(sent))].sort());
      };
      expectWords(right, events);
      expect(recorded(format, neutral(events, g), g)).toEqual(right);
      expectWords(recorded(format, ambiguous(events, g), g), events);
      // A block of Bedrock has no type that tells where the next one begins.
      const kept = g.isDrawn(0.5) ? /"name":|[._-]start|added/ : /^$/;
      const unindexed = events.map((event) => {
        const json = JSON.stringify(event);
        return JSON.parse(json, (key, value) => (INDEX.test(key) && !kept.test(json) ? undefined : value));
      });
      if (format.type !== undefined) expect(recorded(format, unindexed, g)).toEqual(right);
      if (format.reader === openaiCalls.response) {
        const deltas = events.filter(({ type }) => !/\.(done|completed)$/.test(`${type}`));
        expectWords(recorded(format, deltas, g), events);
      }
      const rest = events.filter(() => g.isDrawn(0.8));
      expectWords(recorded(format, rest, g), rest);
      const before = rest.slice(0, g.below(rest.length));
      const failed = recorded(format, [...before, format.error[0], ...rest], g);
      expect(failed.error).toBe(format.error[1]);
      expectWords(failed, before);
      // The end of an event is cut off.
      if (format.type !== undefined)
        expectWords(recorded(format, rest.slice(0, before.length + 1), g, 3 + g.below(20)), before);
    };
    // Each case has six damaged streams, or four of events.
    fc.assert(fc.property(fc.nat(), property), { numRuns: cases(format.type === undefined ? 25_000 : 17_000) });
  },
  180_000,
);
