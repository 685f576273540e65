// A program with all instrumentations of OpenTelemetry. `--import otel-own-work-sdk.mjs` starts its SDK. Prints the names
// of all spans, and how long the process has lived after its last work.
import { createRequire } from 'node:module';

const require = createRequire(new URL('./today/package.json', import.meta.url));
const { trace } = require('@opentelemetry/api');
const dns = require('node:dns');
const fs = require('node:fs');
const http = require('node:http');
// The instrumentation of a module starts when the module is required. The program must not depend on undici for this.
require('node:net');

const spans = globalThis.spansOfProgram;
let workedMs = 0;

const done = (start) => new Promise((resolve) => start(resolve));

await trace.getTracer('app').startActiveSpan('work', async (span) => {
  fs.existsSync('/');
  await fs.promises.readFile(new URL(import.meta.url));
  await done((resolve) => fs.stat('/', resolve));
  await dns.promises.lookup('localhost');
  const server = http.createServer((_, response) => response.end('tea'));
  await done((resolve) => server.listen(0, '127.0.0.1', resolve));
  const options = { port: server.address().port, host: '127.0.0.1', agent: false };
  await done((resolve) => http.get(options, (response) => response.resume().once('end', resolve)));
  server.close();
  span.end();
});
// Meanwhile, the work is delivered.
setTimeout(() => {
  fs.existsSync('/');
  workedMs = performance.now();
}, 500);

// This listener is called last, so that it knows also the spans that are made at the end.
process.once('beforeExit', () => {
  process.on('exit', () => {
    process.stdout.write(JSON.stringify({ spans: spans.sort(), lingerMs: performance.now() - workedMs }));
  });
});
