import { traceable } from 'runspan';

const search = traceable(async (query) => [`A page about ${query}`, `Another page about ${query}`], {
  name: 'search',
  runType: 'retriever',
});

const usage_metadata = { input_tokens: 9, output_tokens: 5, total_tokens: 14 };
const model = traceable(async ({ pages }) => ({ text: `I read ${pages.length} pages.`, usage_metadata }), {
  name: 'model',
  runType: 'llm',
});

const answer = traceable(async (question) => (await model({ pages: await search(question) })).text, { name: 'answer' });

console.log(await answer('tracing'));
