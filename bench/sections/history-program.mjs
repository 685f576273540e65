/** Records the conversation. With `sent`, the runs of each turn are delivered before the next turn starts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { importBuild, QUEUE_ROOM } from '../drivers/build.mjs';
import { piece } from '../workloads/prose.mjs';

const TURNS = 200;
const QUESTION_CHARS = 1_000;
const ANSWER_CHARS = 3_100;
/** The exporter may compress what it holds in the background. */
const SETTLED_AFTER_MS = 2_000;

const isSent = process.argv[2] === 'sent';
const { configure, flush, stats, traceable } = await importBuild('index');
configure({ limits: QUEUE_ROOM });
const complete = traceable(
  async ({ messages }) => {
    await undefined;
    return { role: 'assistant', content: piece(messages.length * 1_327, ANSWER_CHARS) };
  },
  { name: 'complete', runType: 'llm', metadata: { thread_id: 'bench' } },
);

const before = memory();
const messages = [];
let textBytes = 0;
for (let turn = 0; turn < TURNS; turn++) {
  messages.push({ role: 'user', content: `#${turn} ${piece(turn * 2_711, QUESTION_CHARS)}` });
  textBytes += messages.reduce((sum, { content }) => sum + content.length, 0);
  messages.push(await complete({ model: 'example-model-large', messages: [...messages] }));
  textBytes += ANSWER_CHARS;
  await (isSent ? flush() : new Promise(setImmediate));
}
if (!isSent) await sleep(SETTLED_AFTER_MS);
const { backlog, created: runs, dropped } = stats();
const after = memory();
const figures = {
  textBytes,
  heldBytes: backlog.bytes,
  usedBytes: after.used - before.used,
  residentBytes: after.resident - before.resident,
};
process.send({ figures, runs, dropped }, () => process.exit());

function memory() {
  for (let pass = 0; pass < 2; pass++) globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { used: heapUsed + external, resident: rss };
}
