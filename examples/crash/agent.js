// Answers questions until it is killed, and reports each question's number as soon as its call has returned.
// Environment variables set the endpoint and write every run to disk first.
import { traceable } from 'runspan';

const [first, last] = process.argv.slice(2).map(Number);
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
// The program ends normally, and first delivers all remaining runs, also those that another process left, for up to 2 s.
process.disconnect();
