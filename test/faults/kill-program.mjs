// Records ten runs, one of them open, reports this, and ends in the way that the first argument selects, or is killed.
const [ending, durability, name] = process.argv.slice(2);
const { configure, startRun, traceable } = await (durability === 'untraced' ? untraced() : import('runspan'));

configure({
  durability,
  spoolDir: process.env.SPOOL,
  ...(!ending.includes('registered') && { handleSignals: !ending.includes('not asked') }),
  // Sends nothing before the end, unless the program was started to send what was left.
  limits: { lingerMs: ending === 'when told' ? 1 : 600_000 },
});

for (let n = 0; n < 9; n++) traceable((value) => value, { name: `${name} ${n}` })('x'.repeat(1_000));
startRun({ name: `${name} 9` });
console.log('recorded');

const ends = {
  natural: () => {},
  'process.exit': () => process.exit(3),
  throw: () => {
    throw new Error('mine');
  },
  reject: () => void Promise.reject(new Error('mine')),
  'heap full': () => {
    const held = [];
    for (;;) held.push(new Array(100_000).fill(held.length));
  },
  'when told': () => process.stdin.resume(),
};
(ends[ending] ?? (() => setInterval(() => {}, 60_000)))();

/** The same program without runspan. */
async function untraced() {
  return { configure: () => {}, startRun: () => {}, traceable: (fn) => fn };
}
