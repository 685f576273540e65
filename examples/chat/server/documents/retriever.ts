import MiniSearch from 'minisearch';
import { traced } from 'runspan';
import type { Paragraph } from './paragraphs.ts';
import { wordsOf } from './words.ts';

/** Finds the paragraphs that have most to do with a question. */
export class Retriever {
  readonly #paragraphs: readonly Paragraph[];
  readonly #index: MiniSearch<Paragraph>;

  constructor(paragraphs: readonly Paragraph[]) {
    this.#paragraphs = paragraphs;
    this.#index = new MiniSearch<Paragraph>({
      fields: ['text', 'heading', 'source'],
      extractField: (paragraph, field) => {
        const value = paragraph[field as keyof Paragraph];
        return field === 'source' ? String(value).replace(/\.\w+$/, '') : value;
      },
      tokenize: wordsOf,
      processTerm: (word) => word,
      searchOptions: {
        boost: { heading: 1.5, source: 2 },
        // What a document begins with says what it is about; so does a section.
        boostDocument: (id: number) => weightOf(paragraphs[id - 1], paragraphs[id]),
      },
    });
    this.#index.addAll(paragraphs);
  }

  /** Best first. */
  @traced({ runType: 'retriever' })
  retrieve(question: string, limit = 5): Paragraph[] {
    return this.#index
      .search(question)
      .slice(0, limit)
      .flatMap(({ id }) => this.#paragraphs[id] ?? []);
  }
}

function weightOf(before: Paragraph | undefined, own: Paragraph | undefined): number {
  if (before?.source !== own?.source) return 2.5;
  return before?.heading === own?.heading ? 1 : 1.5;
}
