import { type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';

/** What a model says: words, calls of tools, or both. */
export interface LocalReply {
  readonly text: string;
  readonly calls: readonly LocalCall[];
}

interface LocalCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** The time to take a question apart grows with the square of its length. */
const COMPARISON_CHARS_MAX = 2_000;

/** What the rules make of a conversation, by the tools that there are: they tell which of the agents is speaking. */
export function replyTo(messages: readonly BaseMessage[], tools: readonly string[]): LocalReply {
  const asked = messages.findLastIndex((message) => HumanMessage.isInstance(message));
  const question = messages[asked]?.text.trim() ?? '';
  const results = messages.slice(asked + 1).filter((message) => ToolMessage.isInstance(message));
  if (tools.includes('task')) return supervise(question, results);
  if (tools.includes('search_docs')) return research(question, results);
  return { text: shortened(question), calls: [] };
}

function supervise(question: string, results: readonly ToolMessage[]): LocalReply {
  const note = /^(?:please )?(?:save|note|remember|write down)\b[: ]*(?:this|that|a note)?[: ]*(.+)/is.exec(
    question,
  )?.[1];
  const last = results.at(-1);
  if (note !== undefined)
    return last === undefined ? calling('', call('save_note', { text: note })) : saying(last.text);
  if (/^(?:hi|hello|hey|thanks|thank you)\b/i.test(question)) {
    return saying('Hello. Ask about the documents, ask to compare two things, or say "save a note: …".');
  }
  const compared =
    question.length > COMPARISON_CHARS_MAX ? null : /\bcompare (.+?) (?:and|with|to) (.+?)[.?]?$/i.exec(question);
  if (last === undefined) {
    const topics = compared === null ? [question] : [compared[1] ?? '', compared[2] ?? ''];
    return calling('Let me look that up.', ...topics.map((topic) => task('researcher', topic)));
  }
  const written = results.find(({ tool_call_id }) => tool_call_id.startsWith('writer'));
  if (written !== undefined) return saying(written.text);
  if (compared === null) return saying(last.text);
  return calling('', task('writer', results.map(({ text }) => text).join('\n\n')));
}

function research(question: string, results: readonly ToolMessage[]): LocalReply {
  const last = results.at(-1);
  if (last === undefined) return calling('', call('search_docs', { query: question }));
  const found = /^\[1\] ([^\n]+)\n(.+)/.exec(last.text);
  if (found === null) return saying(`On "${question}": ${last.text}`);
  return saying(`On "${question}": ${shortened(found[2] ?? '')} (${found[1]})`);
}

/** Its first two sentences or so; a paragraph each, where there are several. */
function shortened(text: string): string {
  return text.split('\n\n').map(firstSentences).join('\n\n');
}

function firstSentences(paragraph: string): string {
  const [first, second = first] = paragraph.matchAll(/[.!?](?=\s|$)/g);
  return second === undefined ? paragraph : paragraph.slice(0, second.index + 1).trim();
}

function task(subagent: string, description: string): LocalCall {
  return { ...call('task', { subagent_type: subagent, description }), id: `${subagent}-${uuidv7()}` };
}

function call(name: string, args: Readonly<Record<string, unknown>>): LocalCall {
  return { id: `${name}-${uuidv7()}`, name, args };
}

function saying(text: string): LocalReply {
  return { text, calls: [] };
}

function calling(text: string, ...calls: readonly LocalCall[]): LocalReply {
  return { text, calls };
}
