import { type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { wordsOf } from './documents.ts';

/** An answer: text, tool calls, or both. */
export interface LocalReply {
  readonly text: string;
  readonly calls: readonly LocalCall[];
}

interface LocalCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** The time of the expressions below grows with the square of the length. */
const COMPARISON_CHARS_MAX = 2_000;
const COMPARISON = /\b(?:compare|difference between) (.+?) (?:and|with|to) (.+?)[.?!]?$/i;
const GREETING = /^(?:hi|hello|hey|help|thanks|thank you)\b|^what can (?:you|i) do\b/i;
const QUESTION =
  /\?$|^(?:what|how|who|which|when|where|why|can|could|do|does|is|are|should|explain|describe|tell me|show me)\b/i;
/** A command or a list of names has fewer words of letters than prose. */
const PROSE_WORDS_MIN = 5;
const PROSE_SHARE_MIN = 0.7;
const NOTHING = 'The documents say nothing about this.';
/** Limits for long questions: in the task of a subagent, and quoted in an answer. */
const TOPIC_CHARS_MAX = 2_000;
const QUOTED_CHARS_MAX = 200;
/** An answer streams word by word. */
const ANSWER_CHARS_MAX = 4_000;

/** The next answer in a conversation. The tools show which agent is asked. */
export function replyTo(messages: readonly BaseMessage[], tools: readonly string[]): LocalReply {
  const asked = messages.findLastIndex((message) => HumanMessage.isInstance(message));
  const question = messages[asked]?.text.trim() ?? '';
  const results = messages.slice(asked + 1).filter((message) => ToolMessage.isInstance(message));
  if (tools.includes('task')) return supervise(question, results);
  if (tools.includes('search_docs')) return research(question, results);
  return saying(shortened(question));
}

function supervise(question: string, results: readonly ToolMessage[]): LocalReply {
  const note = /^(?:please )?(?:save|note|remember|write down)\b[: ]*(?:this|that|a note)?[: ]*(.+)/is.exec(
    question,
  )?.[1];
  const last = results.at(-1);
  if (note !== undefined)
    return last === undefined ? calling('', call('save_note', { text: note })) : saying(last.text);
  if (GREETING.test(question)) {
    return saying('Hello. Ask about the documents, ask to compare two things, or say "save a note: …".');
  }
  const compared = question.length > COMPARISON_CHARS_MAX ? null : COMPARISON.exec(question);
  if (last === undefined) {
    const topics = compared === null ? [question] : [compared[1] ?? '', compared[2] ?? ''];
    return calling('Let me look that up.', ...topics.map((topic) => task('researcher', cut(topic, TOPIC_CHARS_MAX))));
  }
  const written = results.find(({ tool_call_id }) => tool_call_id.startsWith('writer'));
  if (written !== undefined) return saying(written.text);
  if (compared === null) return saying(last.text);
  return calling('', task('writer', results.map(({ text }) => text).join('\n\n')));
}

function research(question: string, results: readonly ToolMessage[]): LocalReply {
  const last = results.at(-1);
  if (last === undefined) return calling('', call('search_docs', { query: question }));
  // The supervisor may ask about several topics, so the answer names its topic.
  const lead = QUESTION.test(question) ? '' : `On "${cut(question, QUOTED_CHARS_MAX)}": `;
  const passage = bestPassage(question, last.text);
  if (passage === undefined) return saying(lead + NOTHING);
  return saying(`${lead}${passage.beginning} (${passage.source})`);
}

interface Passage {
  readonly source: string;
  /** The first two sentences. */
  readonly beginning: string;
}

/** The passage whose source and first sentence contain most words of the question, and at least half of them. */
function bestPassage(question: string, found: string): Passage | undefined {
  const asked = [...new Set(wordsOf(question))];
  const shareIn = (text: string): number => {
    const words = new Set(wordsOf(text));
    return asked.filter((word) => words.has(word)).length / asked.length;
  };
  const passages = [...found.matchAll(/^\[\d+\] ([^\n]+)\n(.+)/gm)].map(([, source = '', text = '']) => {
    return { source, beginning: sentences(text, 2), share: shareIn(`${source} ${sentences(text, 1)}`) };
  });
  const [best] = passages
    .filter(({ beginning, share }) => share >= 0.5 && isProse(beginning))
    .sort((one, other) => other.share - one.share);
  return best;
}

function isProse(text: string): boolean {
  const words = text.split(/\s+/);
  const plain = words.filter((word) => /^["'(]?\p{L}[\p{L}'’-]*[.,;:!?"')]*$/u.test(word)).length;
  return plain >= PROSE_WORDS_MIN && plain >= words.length * PROSE_SHARE_MIN;
}

/** The first two sentences of each paragraph, and its source. */
function shortened(text: string): string {
  return text
    .split('\n\n')
    .map((paragraph) => {
      const source = / \([^()]*\.\w+(?:, "[^"]*")?\)$/.exec(paragraph)?.[0] ?? '';
      return sentences(paragraph.slice(0, paragraph.length - source.length), 2) + source;
    })
    .join('\n\n');
}

/** The first sentences of a paragraph. */
function sentences(paragraph: string, count: number): string {
  const ends = [...paragraph.matchAll(/[.!?](?=\s|$)/g)].slice(0, count);
  const end = ends.at(-1)?.index;
  return end === undefined ? paragraph : paragraph.slice(0, end + 1).trim();
}

function task(subagent: string, description: string): LocalCall {
  return { ...call('task', { subagent_type: subagent, description }), id: `${subagent}-${uuidv7()}` };
}

function call(name: string, args: Readonly<Record<string, unknown>>): LocalCall {
  return { id: `${name}-${uuidv7()}`, name, args };
}

function saying(text: string): LocalReply {
  return { text: cut(text, ANSWER_CHARS_MAX), calls: [] };
}

/** The beginning of a text. Never ends with half of a surrogate pair. */
function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

function calling(text: string, ...calls: readonly LocalCall[]): LocalReply {
  return { text, calls };
}
