import MiniSearch from 'minisearch';
import { traced } from 'runspan';
import type { Paragraph } from './documents.ts';
import { tokenizeQuestion, tokenizeTexts, tokensOf } from './tokenizer.ts';

/** A found paragraph. */
export interface Hit extends Paragraph {
  readonly score: number;
}

/** Finds the paragraphs that match a question best. */
export class Retriever {
  readonly #paragraphs: readonly Paragraph[];
  readonly #index: MiniSearch<IndexedParagraph>;

  private constructor(paragraphs: readonly Paragraph[], index: MiniSearch<IndexedParagraph>) {
    this.#paragraphs = paragraphs;
    this.#index = index;
  }

  @traced({
    name: 'build index',
    inputs: ([paragraphs]) => ({ paragraphs: (paragraphs as readonly Paragraph[]).length }),
    outputs: (retriever) => ({ terms: (retriever as Retriever).#index.termCount }),
  })
  static over(paragraphs: readonly Paragraph[]): Retriever {
    const texts = tokenizeTexts(paragraphs.map(({ text }) => text));
    const index = new MiniSearch<IndexedParagraph>({
      fields: ['text', 'heading', 'source'],
      // The tokens already exist. The index splits text at spaces.
      tokenize: (text) => text.split(' '),
      processTerm: (term) => term,
      searchOptions: {
        boost: { heading: 1.5, source: 2 },
        // The beginning of a document or section usually summarizes it, so it gets a higher weight.
        boostDocument: (id: number) => weightOf(paragraphs[id - 1], paragraphs[id]),
      },
    });
    index.addAll(
      paragraphs.map(({ id, heading, source }, place) => ({
        id,
        text: (texts[place] ?? []).join(' '),
        heading: tokensOf(heading).join(' '),
        source: tokensOf(source.replace(/\.\w+$/, '')).join(' '),
      })),
    );
    return new Retriever(paragraphs, index);
  }

  @traced({ runType: 'retriever' })
  retrieve(question: string, limit = 5): Hit[] {
    const tokens = tokenizeQuestion(question);
    if (tokens.length === 0) return [];
    return this.#index
      .search(tokens.join(' '))
      .slice(0, limit)
      .flatMap(({ id, score }) => {
        const paragraph = this.#paragraphs[id];
        return paragraph === undefined ? [] : [{ ...paragraph, score }];
      });
  }
}

function weightOf(before: Paragraph | undefined, own: Paragraph | undefined): number {
  if (before?.source !== own?.source) return 2.5;
  return before?.heading === own?.heading ? 1 : 1.5;
}

interface IndexedParagraph {
  readonly id: number;
  readonly text: string;
  readonly heading: string;
  readonly source: string;
}
