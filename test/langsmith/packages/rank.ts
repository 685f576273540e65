// A third-party package, which uses LangSmith's own package in each run of the programs.
import { traceable } from 'langsmith/traceable';

export function makeRank(first: (documents: string[]) => Promise<string>) {
  return traceable(async (documents: string[]) => first(documents.toSorted()), {
    name: 'rank',
    run_type: 'retriever',
    metadata: { index: 'main' },
  });
}
