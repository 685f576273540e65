// A Worker. The path of a request names the call to make. The platform's own entry configures tracing before this module.
import { stats, traceable, withFlush } from 'runspan';
import { calls, unwrapped } from './application.mjs';

async function answer(request, env) {
  const { pathname } = new URL(request.url);
  const name = pathname.slice(1);
  if (name === 'stats') return Response.json(stats());
  if (name === 'early') return new Response(globalThis.early);
  if (name === 'large') return new Response(large('x'.repeat(300_000)));
  if (name === 'slow') return new Response(await slow(request.url));
  if (name === 'unwrapped') return new Response(await unwrapped(env.MODEL_URL));
  if (name === 'proxied') return fetch(`${env.MODEL_URL}/chat/completions`, QUESTION);
  if (name === 'body') return new Response(await words());
  return new Response(await calls[name](env.MODEL_URL));
}

const QUESTION = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'model-a', messages: [{ role: 'user', content: 'Weather?' }], stream: true }),
};

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let slowCalls = 0;
const slow = traceable(
  async (url) => {
    await wait(50 - 10 * (slowCalls++ % 6));
    return url;
  },
  { name: 'slow' },
);

/** A payload that is large enough to be compressed on Node. */
const large = traceable((text) => `${text.length} characters`, { name: 'large' });

const words = traceable(
  async () => {
    let sent = 0;
    return new ReadableStream({
      async pull(controller) {
        await wait(5);
        controller.enqueue(new TextEncoder().encode('word '));
        if (++sent === 3) controller.close();
      },
    });
  },
  { name: 'words', outputs: (chunks) => chunks.length },
);

export default { fetch: withFlush(answer, { timeoutMs: 1_000 }) };
