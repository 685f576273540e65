// A program that traces a little and prints what the application got. Arguments: the endpoint and the time limit of the shutdown.
const runspan = await import('../../../dist/index.js');
const { configure, currentRun, fromHeaders, startRun, stats, toHeaders, traceable, withRun } = runspan;
process.env.RUNSPAN_DEV = '{"limits":{"retryDelayMs":1,"retryDelayMaxMs":1}}';
configure({ endpoint: process.argv[2], limits: { lingerMs: 1 } });

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
await runspan.shutdown({ timeoutMs: Number(process.argv[3]) });
const left = stats();

const isSame = returned === same && Object.getOwnPropertyNames(same).length === 0;
console.log(JSON.stringify({ answer, isSame, list, inside, remote, left }));
