import { type StructuredToolInterface, tool } from '@langchain/core/tools';
import { z } from 'zod';
import type { Retriever } from '../documents/retriever.ts';

/** What is behind that of a query finds nothing better, and takes its time. */
const QUERY_CHARS_MAX = 2_000;

/** Finds paragraphs of the documents; their numbers are what an answer names as its sources. */
export function searchTool(retriever: Retriever): StructuredToolInterface {
  return tool(
    ({ query }) => {
      const hits = retriever.retrieve(query.slice(0, QUERY_CHARS_MAX));
      if (hits.length === 0) return 'The documents say nothing about this.';
      return hits
        .map(
          ({ text, source, heading }, index) =>
            `[${index + 1}] ${source}${heading === '' ? '' : `, "${heading}"`}\n${text}`,
        )
        .join('\n\n');
    },
    {
      name: 'search_docs',
      description: 'Searches the documents, and gives the paragraphs that have most to do with the words.',
      schema: z.object({ query: z.string().describe('Words to search for.') }),
    },
  );
}
