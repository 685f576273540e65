// One OpenTelemetry trace in two processes: this one asks, and search.js, which it starts, answers over HTTP. With
// OpenTelemetry's HTTP instrumentations, which create the request spans and send the headers, only tracing.js is
// needed.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { context, propagation, SpanKind } from '@opentelemetry/api';
import { traceable } from 'runspan';
import { inSpan, shutdown } from './tracing.js';

const search = fork(fileURLToPath(new URL('search.js', import.meta.url)));
const [url] = await once(search, 'message');

const get = (path) =>
  inSpan('GET', SpanKind.CLIENT, async () => {
    const headers = {};
    propagation.inject(context.active(), headers);
    return (await fetch(url + path, { headers })).json();
  });

const answer = traceable(
  async ({ question }) => {
    const pages = await get(`?question=${encodeURIComponent(question)}`);
    return { answer: `I read ${pages.join(' and ')}.` };
  },
  { name: 'answer' },
);

console.log((await answer({ question: 'tea' })).answer);

search.disconnect();
await Promise.all([once(search, 'exit'), shutdown()]);
