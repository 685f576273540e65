import { traceable } from 'runspan';
import type { Hit } from './retriever.ts';
import { tokensOf } from './tokenizer.ts';

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });

interface Sentence {
  readonly text: string;
  readonly tokens: ReadonlySet<string>;
  /** The paragraph's number in the list of sources, starting with 1. */
  readonly source: number;
}

/** Answers without a model: returns sentences from the paragraphs that share the most words with the question. */
export const extractAnswer = traceable(
  (question: string, hits: readonly Hit[], sentencesMax = 3): string => {
    const asked = new Set(tokensOf(question));
    const all = hits.flatMap(sentencesOf);
    const rated = all
      .map((sentence) => ({ sentence, score: scoreOf(sentence, asked, all) / sentence.source ** 0.5 }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, sentencesMax);
    if (rated.length === 0) return 'The documents say nothing about this.';
    return rated.map(({ sentence }) => `${sentence.text} [${sentence.source}]`).join(' ');
  },
  {
    name: 'extract answer',
    runType: 'parser',
    inputs: ([question, hits]) => ({ question, paragraphs: hits.map(({ id }) => id) }),
    outputs: (answer) => ({ answer }),
  },
);

function sentencesOf({ text }: Hit, index: number): Sentence[] {
  return [...sentences.segment(text)].map(({ segment }) => ({
    text: segment.trim(),
    tokens: new Set(tokensOf(segment)),
    source: index + 1,
  }));
}

/** Words in few sentences have a higher weight, and long sentences a lower score. */
function scoreOf({ tokens }: Sentence, asked: ReadonlySet<string>, all: readonly Sentence[]): number {
  let score = 0;
  for (const token of tokens) {
    if (asked.has(token)) score += Math.log(1 + all.length / all.filter((other) => other.tokens.has(token)).length);
  }
  return score / Math.log(10 + tokens.size);
}
