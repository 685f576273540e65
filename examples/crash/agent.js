// The program that is killed: it answers questions, and tells its number as soon as a call has returned. Where to send, and that
// everything is written to disk first, says its environment.
import { configure, traceable } from 'runspan';

const [first, last] = process.argv.slice(2).map(Number);
// A program that ends by itself delivers what is left within this time, also what another has left.
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
