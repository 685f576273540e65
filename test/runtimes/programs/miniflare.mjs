// Serves the bundled Worker of the first argument with workerd, with the options of the second argument. Prints the address,
// and ends when standard input ends.
import { readFileSync } from 'node:fs';
import { Miniflare } from 'miniflare';

const [, , script, options] = process.argv;
const miniflare = new Miniflare({
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: readFileSync(script, 'utf8') }],
  compatibilityDate: '2025-01-01',
  ...JSON.parse(options),
});
console.log(String(await miniflare.ready));
for await (const _ of process.stdin);
await miniflare.dispose();
