// Calls traced functions while tracing is off or on: `node off.mjs off|on`. Prints whether an AsyncLocalStorage was entered,
// and whether promises have the symbols that Node adds if one is in use.
import { AsyncLocalStorage } from 'node:async_hooks';
import { writeFileSync } from 'node:fs';

let entered = 0;
for (const method of ['run', 'enterWith']) {
  const original = AsyncLocalStorage.prototype[method];
  AsyncLocalStorage.prototype[method] = function (...args) {
    entered++;
    return Reflect.apply(original, this, args);
  };
}

const { startRun, traceable, withRun } = await import('runspan');
const { recordRuns } = await import('runspan/testing');
const recorder = process.argv[2] === 'on' ? recordRuns() : undefined;

traceable((a) => a)(1);
await traceable(async (a) => a)(2);
for (const _ of traceable(function* () {
  yield 3;
})());
for await (const _ of traceable(async function* () {
  yield 4;
})());
withRun(startRun({ name: 'by hand' }), () => {});

const marks = Reflect.ownKeys(Promise.resolve()).length;
console.log(entered === 0 ? 'never entered' : 'entered', marks === 0 ? 'plain promises' : 'marked promises');
writeFileSync(process.env.RUNS_FILE, JSON.stringify(recorder?.runs ?? []));
