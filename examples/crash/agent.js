// Answers questions until it is killed, and reports each question's number as soon as its call has returned.
// Environment variables set the endpoint and write every run to disk first.
import { configure, traceable } from 'runspan';

const [first, last] = process.argv.slice(2).map(Number);
// When the program ends normally, it delivers all remaining runs within this time, including those that another process
// left.
configure({ limits: { exitFlushMs: 10_000 } });

const answer = traceable(
  async ({ n }) => {
    await new Promise(setImmediate);
    return { text: `Answer ${n}` };
  },
  { name: 'answer' },
);

for (let n = first; n <= last; n++) {
  await answer({ n });
  await new Promise((resolve) => process.send(n, resolve));
}
process.disconnect();
