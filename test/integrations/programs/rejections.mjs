// Ways to leave a failed call alone, all in one process, with a client that is bare or wrapped: `node rejections.mjs
// bare|traced`, of the version at OPENAI_PACKAGE. It prints what was handled and what was not; each way fails with a status
// of its own, by which it is told.
import { startLocalModel } from '../../../examples/local-model/server.js';

const { default: OpenAI } = await import(process.env.OPENAI_PACKAGE ?? 'openai');
const { wrapOpenAI } = await import('runspan/openai');
const { recordRuns } = await import('runspan/testing');

const model = await startLocalModel();
const recorder = recordRuns();
const bare = new OpenAI({ apiKey: 'none', baseURL: model.url, maxRetries: 0, logLevel: 'off' });
const client = process.argv[2] === 'traced' ? wrapOpenAI(bare) : bare;

const messages = [{ role: 'user', content: 'tea' }];
const fails = (status) => client.chat.completions.create({ model: `fail-${status}`, messages });
const caught = (error) => console.log('caught', error.message);

process.on('unhandledRejection', (error) => console.log('unhandled', error.message));
process.on('rejectionHandled', () => console.log('handled late'));
process.on('exit', () => {
  for (const { error } of recorder.runs) console.log('run', error?.split('\n')[0]);
});

const ways = [
  () => fails(410),
  () => client.responses.create({ model: 'fail-411', input: 'tea' }),
  () => client.embeddings.create({ model: 'fail-412', input: 'tea' }),
  () => fails(413).then(() => console.log('never')),
  () => fails(414).finally(() => console.log('finally')),
  () => fails(415).catch(caught),
  () => fails(416).withResponse(),
  () => fails(417).asResponse(),
  () => fails(418).asResponse().catch(caught),
  () => client.chat.completions.parse({ model: 'fail-419', messages }),
  () => {
    const promise = fails(420);
    process.on('unhandledRejection', (error) => {
      if (error.status === 420) promise.catch(caught);
    });
  },
  () => client.chat.completions.create({ model: 'malformed', messages }).then(() => console.log('never')),
  async () => {
    const stream = await client.chat.completions.create({ model: 'malformed', messages, stream: true });
    const iterator = stream[Symbol.asyncIterator]();
    for (let step = 0; step < 3; step++) await iterator.next();
    iterator.next();
  },
  () => client.chat.completions.stream({ model: 'fail-423', messages }),
];

for (const way of ways) way();
while (model.requests.length < ways.length) await new Promise(setImmediate);
await Promise.all(model.requests.map(({ closed }) => closed));
await model.close();
