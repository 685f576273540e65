import { type Fields, fieldsOf } from './fields.ts';

const TITLE_MAX = 80;

/** A title for a thread, by the first message of a person in its input; empty where there is none. */
export function titleOf(input: unknown): string {
  const { messages } = fieldsOf(input);
  if (!Array.isArray(messages)) return '';
  const said = (messages as readonly Fields[]).find((message) => message?.type === 'human' || message?.role === 'user');
  const characters = [...textOf(said?.content).replace(/\s+/g, ' ').trim()];
  if (characters.length <= TITLE_MAX) return characters.join('');
  return `${characters
    .slice(0, TITLE_MAX - 1)
    .join('')
    .trimEnd()}…`;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as readonly { readonly text?: unknown }[])
    .map((block) => (typeof block?.text === 'string' ? block.text : ''))
    .join(' ');
}
