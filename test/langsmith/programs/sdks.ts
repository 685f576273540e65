// Any SDK, and the AI SDK.

import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { createLangSmithProviderOptions, wrapAISDK } from 'langsmith/experimental/vercel';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';
import { wrapSDK } from 'langsmith/wrappers';

class Vectors {
  readonly #rows = new Map<string, number[]>();
  readonly index = { search: async ({ query }: { query: string }) => ({ matches: [query] }) };

  async add(id: string, vector: number[]): Promise<number> {
    this.#rows.set(id, vector);
    return this.#rows.size;
  }
}

const vectors = wrapSDK(new Vectors(), { name: 'vectors', run_type: 'retriever', tags: ['sdk'], metadata: { a: 1 } });
await vectors.add('a', [1, 2]);
await traceable(
  async () => {
    getCurrentRunTree().metadata.user = 'u2';
    await vectors.index.search({ query: 'rain' });
  },
  { name: 'around' },
)();

const model = new MockLanguageModelV3({
  modelId: 'mock-model',
  doGenerate: async () => ({
    content: [{ type: 'text', text: 'It is raining.' }],
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: {
      inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 4, text: 4, reasoning: 0 },
    },
    warnings: [],
  }),
});
const { generateText } = wrapAISDK(ai, { tags: ['ai'], metadata: { team: 'weather' } });
const { text } = await generateText({
  model,
  prompt: 'Is it raining?',
  providerOptions: { langsmith: createLangSmithProviderOptions({ metadata: { user: 'u1' } }) },
});
text.trim();
