import { type Fields, fieldsOf } from './fields.ts';

const TITLE_MAX = 80;

/** A title for a thread, by the first message of a person in its input; empty where there is none. */
export function titleOf(input: unknown): string {
  return shortened(textOf(saidIn(input)[0]?.content));
}

/** The title of a branch, by the first message of a person in it: of the state that it goes on from, unless the input brings another in its place. */
export function branchTitleOf(state: unknown, input: unknown): string {
  const [first] = saidIn(state);
  const said = saidIn(input);
  const isChanged = first === undefined || said.some(({ id }) => id !== undefined && id === first.id);
  return isChanged ? titleOf(input) : shortened(textOf(first.content));
}

function saidIn(values: unknown): Fields[] {
  const { messages } = fieldsOf(values);
  if (!Array.isArray(messages)) return [];
  return (messages as readonly Fields[]).filter((message) => message?.type === 'human' || message?.role === 'user');
}

function shortened(text: string): string {
  const characters = [...text.replace(/\s+/g, ' ').trim()];
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
