// What services receive and answer, and what must be recorded of it. A format says any answer of a model; an exchange is
// one request with its response.
import type { UsageMetadata } from '#src/index.ts';

/** What a model answers. Each text arrives in several pieces. */
export interface Answer {
  readonly thought: readonly string[];
  readonly text: readonly string[];
  readonly calls: readonly ToolCall[];
  /** The value of a part whose type is not known. */
  readonly unknown?: string;
}

interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** The pieces of the text `q` in the arguments. */
  readonly words: readonly string[];
}

/** A request with its response, and the run that is recorded. A run that is streamed equals the one that is not. */
export interface Exchange {
  readonly title: string;
  readonly name: string;
  readonly url: string;
  readonly provider: string;
  readonly runType?: string;
  readonly body: object;
  readonly response?: unknown;
  readonly events?: readonly unknown[] | undefined;
  readonly isLines?: true;
  /** The lines that the page shows of the messages of the request and of the response. */
  readonly asked?: readonly string[];
  readonly said?: readonly string[] | undefined;
  readonly inputs?: object;
  /** The recorded outputs without `usage_metadata`, if they are not the response. */
  readonly outputs?: object;
  /** What differs in the outputs of a stream. */
  readonly streamed?: object;
  readonly error?: string;
  /** The usage in the response, and the recorded one. */
  readonly counts?: object | undefined;
  readonly usage?: UsageMetadata | undefined;
  readonly metadata?: object;
  /** Whether the stream contains no text, reasoning or input of a tool. */
  readonly isSilent?: true;
}

export interface Format extends Pick<Exchange, 'name' | 'url' | 'provider' | 'isLines' | 'outputs'> {
  readonly body: object;
  readonly asked: readonly string[];
  readonly counts: object;
  readonly usage: UsageMetadata;
  readonly metadata: object;
  response(answer: Answer, counts: object): object;
  events(answer: Answer, counts: object): object[];
  /** The last event of a stream that fails, and the recorded error. */
  readonly error: readonly [event: object, error: string];
}

/** The answer that every format has. */
export const ANSWER: Answer = {
  thought: ['Hm, ', 'so.'],
  text: ['It ', 'rains.'],
  calls: [{ id: 'call_2', name: 'warn', words: ['a ', 'storm'] }],
};

/** The lines of `ANSWER`, and of the messages of each request. */
export const SAID = [
  'assistant: reasoning Hm, so.',
  'assistant: It rains.',
  'assistant: calls warn({"q":"a storm"})#call_2',
];
export const asked = (resultRole = 'tool', id = '#call_1'): string[] => [
  'system: Be kind.',
  'user: See this.',
  'user: media image/png iVBORw0K',
  `assistant: calls find({"q":1})${id}`,
  `${resultRole}: returned {"found":2}${id}`,
];

export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** The messages of a request in the format of OpenAI, with further fields of the call. */
export const askedMessages = (more: object = {}): object[] => [
  { role: 'system', content: 'Be kind.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'See this.' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
    ],
  },
  { role: 'assistant', ...more, tool_calls: [called('call_1', 'find', '{"q":1}')] },
  { role: 'tool', tool_call_id: 'call_1', content: '{"found":2}' },
];

/** The pieces in which the arguments of a call arrive. */
export const pieces = ({ words }: ToolCall): string[] => ['{"q":"', ...words, '"}'];

/** A call of a tool in the format of OpenAI, which other services have too. */
export const called = (id: string, name: string, json: string) => ({
  id,
  type: 'function',
  function: { name, arguments: json },
});

/** Usage whose total is the sum, unless it is given. */
export const tokens = (input: number, output: number, input_token_details?: object, output_token_details?: object) =>
  ({
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    ...(input_token_details && { input_token_details }),
    ...(output_token_details && { output_token_details }),
  }) as UsageMetadata;

/** An exchange of the answer of the table. */
export function exchangeOf(format: Format, more: Partial<Exchange> & { title: string }): Exchange {
  const { response, events, error: _, ...rest } = format;
  const { counts = format.counts } = more;
  const answered = { response: response(ANSWER, counts), events: events(ANSWER, counts) };
  return { ...rest, ...answered, said: SAID, counts, ...more };
}
