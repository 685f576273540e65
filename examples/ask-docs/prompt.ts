import { traceable } from 'runspan';
import type { Hit } from './retriever.ts';

/** A message in the format of OpenAI-compatible models. */
export interface Message {
  readonly role: 'system' | 'user';
  readonly content: string;
}

export const buildPrompt = traceable(
  (question: string, hits: readonly Hit[]): Message[] => [
    {
      role: 'system',
      content:
        'Answer the question from the numbered excerpts alone, in a few sentences, and name the numbers that you ' +
        'used, for example [1]. If they do not answer it, say so.',
    },
    { role: 'user', content: `${hits.map(excerpt).join('\n\n')}\n\nQuestion: ${question}` },
  ],
  {
    name: 'build prompt',
    runType: 'prompt',
    inputs: ([question, hits]) => ({ question, paragraphs: hits.map(({ id }) => id) }),
    outputs: (messages) => ({ messages }),
  },
);

function excerpt({ source, heading, text }: Hit, index: number): string {
  return `[${index + 1}] ${source}${heading === '' ? '' : `, "${heading}"`}\n${text}`;
}
