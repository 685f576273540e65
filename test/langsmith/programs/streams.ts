// Generators and streams, with and without an aggregator.
import { traceable } from 'langsmith/traceable';

async function* words(text: string): AsyncGenerator<string> {
  for (const word of text.split(' ')) yield word;
}

const generated = traceable(words, { name: 'async generator', run_type: 'llm' });
for await (const word of generated('it is raining')) word.trim();

const joined = traceable(words, {
  name: 'aggregated',
  aggregator: (chunks: string[]) => chunks.join(' '),
  processOutputs: ({ outputs }) => ({ text: outputs }),
});
for await (const word of joined('it is raining')) word.trim();

const counted = traceable(
  function* (limit: number) {
    for (let n = 0; n < limit; n++) yield n;
  },
  { name: 'generator' },
);
for (const n of await counted(3)) n.toFixed();

const streamed = traceable(async (text: string) => ({ stream: words(text), id: 7 }), {
  name: 'stream in a result',
  __finalTracedIteratorKey: 'stream',
  aggregator: (chunks: string[]) => chunks.join('-'),
});
const { stream } = (await streamed('a b c')) as { stream: AsyncGenerator<string> };
for await (const word of stream) word.trim();

const web = traceable(
  async () =>
    new ReadableStream<string>({
      start(controller) {
        controller.enqueue('a');
        controller.enqueue('b');
        controller.close();
      },
    }),
  { name: 'web stream' },
);
for await (const chunk of (await web()) as unknown as AsyncIterable<string>) chunk.trim();

const broken = traceable(
  async function* () {
    yield 'a';
    throw new TypeError('broken');
  },
  { name: 'broken stream' },
);
try {
  for await (const chunk of broken()) chunk.trim();
} catch {}

const left = traceable(words, { name: 'left' });
for await (const word of left('it is raining')) if (word === 'is') break;

// What a function reads of its arguments is recorded as inputs, whether they are iterators, streams or promises.
const parrot = traceable(
  async function* (input: Iterable<string> | AsyncIterable<string> | Promise<string[]>) {
    yield* await input;
  },
  { name: 'parrot' },
);
const webStream = (text: string) => new Blob([text]).stream().pipeThrough(new TextDecoderStream());
for (const input of [['a', 'b'].values(), words('c d'), webStream('e'), Promise.resolve(['f', 'g'])]) {
  for await (const word of parrot(input as AsyncIterable<string>)) word.trim();
}
const first = traceable(
  async (stream: ReadableStream<string>, lines: Iterator<string>, text: Promise<string>) => {
    const { value } = await stream.getReader().read();
    return [value, lines.next().value, await text];
  },
  { name: 'several arguments' },
);
await first(webStream('a'), ['b', 'c'].values(), Promise.resolve('d'));
