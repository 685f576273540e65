// A program that traces a little on a host of its own kind. Arguments: what is put on all objects (JSON, a text or 'function'
// by name) and when: before the import, after it, or after a first delivery. Prints what came of it.
// From Node 22 on this loads parts of Node that cannot be loaded on such a host, by whomever.
import 'node:http';

const [given = '{}', when = 'before'] = process.argv.slice(2);
const properties = Object.entries(JSON.parse(given));

function pollute() {
  for (const [name, value] of properties) {
    const shown = value === 'function' ? () => `polluted ${name}` : value;
    const described = { value: shown, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(Object.prototype, name, Object.assign(Object.create(null), described));
  }
}

if (when === 'before') pollute();
const runspan = await import('../../../dist/index.js');
const { configure, currentRun, flush, fromHeaders, startRun, stats, toHeaders, traceable, withRun } = runspan;
configure({ endpoint: process.argv[4], limits: { lingerMs: 1, retryDelayMs: 1, retryDelayMaxMs: 1 } });
if (when === 'sent') {
  startRun({ name: 'first' }).end();
  await flush();
}
if (when !== 'before') pollute();

let remote;
const inner = traceable(async function inner({ q }) {
  remote = fromHeaders(toHeaders())?.id === currentRun()?.id;
  return { answer: q };
});
const outer = traceable(async function outer(question) {
  return inner(question);
});
const same = {};
const identity = traceable(function identity(value) {
  return value;
});
const answer = (await outer({ q: 'hello', password: 'x' })).answer;
const returned = identity(same);
const list = [
  ...traceable(function* items(n) {
    for (let i = 0; i < n; i++) yield i;
  })(3),
];
const run = startRun({ name: 'by hand', inputs: { a: 1 } });
const inside = withRun(run, () => currentRun() === run);
run.end({ b: 2 });
await runspan.shutdown({ timeoutMs: Number(process.argv[5]) });
const left = stats();

for (const [name] of properties) delete Object.prototype[name];
const isSame = returned === same && Object.getOwnPropertyNames(same).length === 0;
console.log(JSON.stringify({ answer, isSame, list, inside, remote, left }));
