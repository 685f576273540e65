/** Runs agents of 50 turns whose runs stay in the queue, and sends what the heap holds of them. */
import { configure, flush, traceable } from 'runspan';

const AGENTS = 6;
const TURNS = 50;
/** Nothing leaves before it is told to. */
const limits = { lingerMs: 600_000, batchRuns: 100_000 };

const complete = traceable(
  async ({ messages }) => ({ role: 'assistant', content: `Turn ${messages.length}: ${prose(messages.length)}` }),
  { name: 'complete', runType: 'llm' },
);
const agent = traceable(
  async (question) => {
    const messages = [{ role: 'system', content: 'Answer from the notes alone.' }];
    for (let turn = 0; turn < TURNS; turn++) {
      messages.push({ role: 'user', content: `${question} (${turn}) ${prose(turn)}` });
      messages.push(await complete({ model: 'example-model-large', messages }));
    }
    return messages.length;
  },
  { name: 'agent' },
);

configure();
await agent('to warm up');
await flush();
configure({ limits });
const before = heldBytes();
for (let number = 0; number < AGENTS; number++) await agent(`agent ${number}`);
const retainedBytes = heldBytes() - before;
process.send({ runs: AGENTS * (TURNS + 1), retainedBytes });
await flush();
process.disconnect();

function heldBytes() {
  for (let pass = 0; pass < 4; pass++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function prose(seed) {
  return `A batch that is refused is told in aggregate; the ${seed} others arrive. `.repeat(7);
}
