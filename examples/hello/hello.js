import { traceable } from 'runspan';

const search = traceable(async (query) => [`A page about ${query}`, `Another page about ${query}`], {
  name: 'search',
  runType: 'retriever',
});

const summarize = traceable((pages) => `${pages.length} pages found: ${pages.join(', ')}.`, { name: 'summarize' });

const answer = traceable(async (question) => summarize(await search(question)), { name: 'answer' });

console.log(await answer('tracing'));
