// What an application traces on every runtime.
import OpenAI from 'openai';
import { currentRun, runIdFrom, traceable, withRun } from 'runspan';
import { wrapOpenAI } from 'runspan/openai';

const hello = traceable(async (name) => `Hello, ${name}!`, { name: 'hello' });

const search = traceable(async (question) => [question], { name: 'search', runType: 'tool' });
const rank = traceable(async (found) => found.length, { name: 'rank' });

const nested = traceable(
  async (question) => {
    const found = await search(question);
    return rank(found);
  },
  { name: 'nested' },
);

/** Like `nested`, for runtimes that forget the current run at `await`. */
const explicit = traceable(
  async (question) => {
    const run = currentRun();
    const found = await search(question);
    return withRun(run, () => rank(found));
  },
  { name: 'explicit' },
);

const generated = traceable(
  async function* () {
    yield 'one ';
    yield 'two';
  },
  { name: 'generated' },
);

const streamed = traceable(
  async () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue('one ');
        controller.enqueue('two');
        controller.close();
      },
    }),
  { name: 'streamed' },
);

const attached = traceable(
  async () => {
    currentRun()?.attach('note', new TextEncoder().encode('grün'), 'text/plain');
    return runIdFrom('order 7').length;
  },
  { name: 'attached' },
);

async function read(chunks) {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
}

/** The calls by name. Each returns what the application prints. `modelUrl` is the address of a model. */
export const calls = {
  hello: () => hello('runtime'),
  nested: () => nested('Why?'),
  explicit: () => explicit('Why?'),
  generated: () => read(generated()),
  streamed: async () => read(await streamed()),
  attached: () => attached(),
  openai: (modelUrl) => ask(wrapOpenAI(clientOf(modelUrl))),
};

/** Calls the model with a client that is not wrapped, for `runspan/register`. */
export const unwrapped = (modelUrl) => ask(clientOf(modelUrl));

function clientOf(modelUrl) {
  return new OpenAI({ apiKey: 'sk-test', baseURL: modelUrl, maxRetries: 0 });
}

async function ask(client) {
  const messages = [{ role: 'user', content: 'Weather?' }];
  const { choices } = await client.chat.completions.create({ model: 'model-a', messages });
  let text = '';
  const stream = await client.chat.completions.create({ model: 'model-a', messages, stream: true });
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  return `${choices[0].message.content} ${text}`;
}
