import { traceable } from 'runspan';
import { readDocuments } from './documents.ts';
import { extractAnswer } from './extraction.ts';
import { askModel, type Model } from './model.ts';
import { buildPrompt } from './prompt.ts';
import { Retriever } from './retriever.ts';

export interface Answer {
  readonly text: string;
  /** What produced the answer: the name of a model, or `extraction`. */
  readonly by: string;
  /** The sources that the numbers in the text refer to, starting with 1. */
  readonly sources: readonly string[];
  /** Number of searched paragraphs. */
  readonly searched: number;
}

/** Answers a question from a folder's Markdown files, with a model or by extracting sentences. */
export const ask = traceable(
  async (question: string, folder: string, model: Model | undefined): Promise<Answer> => {
    const paragraphs = readDocuments(folder);
    const hits = Retriever.over(paragraphs).retrieve(question);
    const messages = buildPrompt(question, hits);
    const text = model === undefined ? extractAnswer(question, hits) : await askModel(model, messages);
    return {
      text,
      by: model === undefined ? 'extraction' : `the model ${model.name}`,
      sources: hits.map(({ source, heading }) => (heading === '' ? source : `${source}, "${heading}"`)),
      searched: paragraphs.length,
    };
  },
  { name: 'ask-docs', inputs: ([question, folder]) => ({ question, folder }) },
);
