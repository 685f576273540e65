// One trace in two processes: this one asks, and search.js, which it starts, answers over HTTP.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { flush, toHeaders, traceable } from 'runspan';

const search = fork(fileURLToPath(new URL('search.js', import.meta.url)));
const [url] = await once(search, 'message');

const answer = traceable(
  async ({ question }) => {
    const response = await fetch(`${url}?question=${encodeURIComponent(question)}`, { headers: toHeaders() });
    const pages = await response.json();
    return { answer: `I read ${pages.join(' and ')}.` };
  },
  { name: 'answer', tags: ['shop'], metadata: { user: 'ada' } },
);

console.log((await answer({ question: 'tea' })).answer);

search.disconnect();
await Promise.all([once(search, 'exit'), flush()]);
