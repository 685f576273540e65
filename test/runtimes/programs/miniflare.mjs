// Serves the bundled Worker of the first argument with workerd, prints its address, and ends when standard input ends.
import { readFileSync } from 'node:fs';
import { Miniflare } from 'miniflare';

const [, , script, flags, bindings] = process.argv;
const miniflare = new Miniflare({
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: readFileSync(script, 'utf8') }],
  compatibilityDate: '2025-01-01',
  compatibilityFlags: JSON.parse(flags),
  bindings: JSON.parse(bindings),
});
console.log(String(await miniflare.ready));
for await (const _ of process.stdin);
await miniflare.dispose();
