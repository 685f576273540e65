// Calls `callee.mjs` 1,000 times. It is a process of its own if there is an argument, otherwise a part of this one.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { configure, flush, traceable } from 'runspan';

const callee = process.argv[2] && fork(new URL('callee.mjs', import.meta.url));
const port = new Promise((resolve) => {
  if (callee) callee.once('message', resolve);
  else process.send = resolve;
});
if (!callee) await import('./callee.mjs');
const origin = `http://127.0.0.1:${await port}`;
configure({ propagateTo: [origin] });
const call = async (path) => {
  const response = await fetch(origin + path);
  await response.text();
  if (!response.ok) throw new Error('broke');
};
const kinds = { 0: 'broken', 100: 'slow', 150: 'broken' };
const left = Array.from({ length: 1_000 }, (_, at) => `/${kinds[at % 300] ?? 'ok'}-${at}`).values();
const caller = async () => {
  for (const path of left) await traceable(call, { name: path })(path).catch(() => {});
};
await Promise.all(Array.from({ length: 10 }, caller));
callee?.disconnect();
await Promise.all([callee && once(callee, 'exit'), flush()]);
process.exit();
