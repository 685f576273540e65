// Answers in chunks, with four kinds of streams. Each run ends when its stream does, and only this program reads the
// streams.
import { Readable } from 'node:stream';
import { flush, traceable } from 'runspan';

const WORDS = ['A', 'span', 'is', 'opened', 'when', 'work', 'begins.'];
const joined = (words) => ({ text: words.join(' ') });

const generated = traceable(
  async function* generated() {
    yield* WORDS;
  },
  { runType: 'llm', aggregate: joined },
);

const webStream = traceable(() => ReadableStream.from(WORDS), { name: 'web stream', aggregate: joined });

const nodeStream = traceable(() => Readable.from(WORDS), { name: 'Node stream', aggregate: joined });

const promised = traceable(async () => generated.with({ name: 'inner' })(), { name: 'promised', aggregate: joined });

async function read(stream) {
  const words = [];
  for await (const word of stream) words.push(word);
  return words.join(' ');
}

console.log('generator:', await read(generated()));
console.log('web stream:', await read(webStream()));
console.log('Node stream:', await read(nodeStream()));
console.log('promised:', await read(await promised()));

for await (const word of generated.with({ name: 'left early' })()) {
  console.log('left after:', word);
  break;
}

await flush();
