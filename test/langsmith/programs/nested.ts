import { getCurrentRunTree, traceable } from 'langsmith/traceable';

const search = traceable(async (query: string, limit: number) => [`${query} ${limit}`], {
  name: 'search',
  run_type: 'retriever',
  tags: ['inner'],
  metadata: { index: 'main' },
});

const count = traceable((documents: string[]) => documents.length);

const nothing = traceable(async () => {});

const answer = traceable(
  async (question: { text: string }) => {
    const tree = getCurrentRunTree();
    tree.metadata = { user: 'u1' };
    tree.tags = [...(tree.tags ?? []), 'added'];
    const documents = await search(question.text, 3);
    const total: number = await count(documents);
    await nothing();
    return { text: `found ${total}`, parent: tree.name };
  },
  { name: 'answer', tags: ['outer'], metadata: { version: 1 } },
);

await answer({ text: 'where' });
await traceable(async (value: null) => value)(null);
