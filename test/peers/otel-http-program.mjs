// A client and a server in separate processes with OpenTelemetry's HTTP and fetch instrumentations:
// `otel-http-program.mjs server <with>` prints its address and ends with its input, and `otel-http-program.mjs client
// <with> <address>` sends it requests. `with` is `runs` for runspan's propagator with W3C's, and `w3c` for
// W3C's alone. The environment sets where the runs go.
import { createRequire } from 'node:module';
import { flush, toHeaders, traceable } from 'runspan';
import { RunPropagator, RunSpanProcessor } from 'runspan/otel';

const [role, given, address] = process.argv.slice(2);
const require = createRequire(new URL('./otel/package.json', import.meta.url));
const { context, propagation } = require('@opentelemetry/api');
const { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } = require('@opentelemetry/core');
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici');
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');

const ours =
  given === 'w3c' ? [] : [new RunPropagator({ trust: true, metadata: true, accept: ['project', 'tags', 'metadata'] })];
const provider = new NodeTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
provider.register({
  propagator: new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator(), ...ours],
  }),
});
registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()] });
const http = require('node:http');

await (role === 'server' ? serve() : ask());

async function serve() {
  const search = traceable(async (question) => [`the page on ${question}`], { name: 'search', runType: 'retriever' });
  const server = http.createServer(async (request, response) => {
    const { searchParams } = new URL(request.url, 'http://localhost');
    const pages = await search(searchParams.get('question'));
    const { baggage } = request.headers;
    response.end(JSON.stringify({ pages, baggage, repeated: request.headersDistinct['runspan-trace']?.length ?? 0 }));
  });
  server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`));
  process.stdin.resume().once('end', async () => {
    server.close();
    server.closeAllConnections();
    await provider.shutdown();
  });
}

async function ask() {
  const byFetch = (question, headers = {}) =>
    fetch(`${address}/?question=${question}`, { headers }).then((response) => response.json());
  const byHttp = (question) =>
    new Promise((resolve, reject) => {
      http
        .get(`${address}/?question=${question}`, { headers: { Baggage: 'mine=1' } }, async (response) => {
          let text = '';
          for await (const chunk of response) text += chunk;
          resolve(JSON.parse(text));
        })
        .on('error', reject);
    });
  const work = traceable(
    async () => {
      const answers = [await byFetch('tea'), await byHttp('coffee')];
      if (given !== 'runs') return answers;
      const byHand = traceable(() => byFetch('water', toHeaders()), { name: 'by hand' });
      return [...answers, await byHand()];
    },
    { name: 'work', project: 'shop', tags: ['a'], metadata: { user: 'ada' } },
  );
  const baggage = propagation.createBaggage({ tenant: { value: 'blue' } });
  const answers = await context.with(propagation.setBaggage(context.active(), baggage), work);
  await provider.shutdown();
  await flush();
  process.stdout.write(JSON.stringify(answers));
}
