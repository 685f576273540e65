// An application whose HTTP requests are observed by OpenTelemetry's instrumentations for node:http and undici. Its
// database spans have the attributes that the pg instrumentation sets. Prints the runs that the spans become as JSON.
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { load } from './otel/load.mjs';
import { recording } from './otel-recording.mjs';

const { registerInstrumentations } = await load('@opentelemetry/instrumentation');
const { HttpInstrumentation } = await load('@opentelemetry/instrumentation-http');
const { UndiciInstrumentation } = await load('@opentelemetry/instrumentation-undici');
const { SpanKind, SpanStatusCode } = await load('@opentelemetry/api');
const { provider, print } = recording();
registerInstrumentations({
  tracerProvider: provider,
  instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()],
});

// Uses `require`, because the instrumentation patches imported modules only with a loader.
const http = createRequire(import.meta.url)('node:http');
const tracer = provider.getTracer('@opentelemetry/instrumentation-pg', '0.75.0');

const server = http.createServer((request, response) => {
  if (request.url.startsWith('/missing')) response.statusCode = 404;
  if (request.url.startsWith('/broken')) response.statusCode = 500;
  query('SELECT name FROM users WHERE id = $1', ['7']);
  response.end('{}');
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();

await tracer.startActiveSpan('by node:http', async (span) => {
  const url = `http://ann:pw@127.0.0.1:${port}/users/7?api_key=k&page=2`;
  const [response] = await once(http.get(url, { agent: false }), 'response');
  await once(response.resume(), 'end');
  span.end();
});
await tracer.startActiveSpan('by fetch', async (span) => {
  const options = { method: 'POST', body: '{}', headers: { connection: 'close' } };
  await (await fetch(`http://127.0.0.1:${port}/missing?token=t`, options)).text();
  await (await fetch(`http://127.0.0.1:${port}/broken`, { headers: { connection: 'close' } })).text();
  span.end();
});
await tracer.startActiveSpan('by fetch, to nobody', async (span) => {
  server.close();
  await once(server, 'close');
  await fetch(`http://127.0.0.1:${port}/`).catch(() => {});
  span.end();
});
query('SELECT', [], { code: 42601, message: 'syntax error at end of input' });
print();

/** Uses the attribute names that are set by default, or with `database` in OTEL_SEMCONV_STABILITY_OPT_IN. */
function query(text, values, error) {
  const old = {
    'db.system': 'postgresql',
    'db.name': 'shop',
    'db.connection_string': 'postgresql://db.example:5432/shop',
    'net.peer.name': 'db.example',
    'net.peer.port': 5432,
    'db.user': 'ann',
    'db.statement': text,
    // Set with the option `enhancedDatabaseReporting`.
    'db.postgresql.values': values,
  };
  const stable = {
    'db.system.name': 'postgresql',
    'db.namespace': 'shop',
    'server.address': 'db.example',
    'server.port': 5432,
    'db.query.text': text,
  };
  for (const attributes of [old, stable]) {
    const span = tracer.startSpan('pg.query:SELECT shop', { kind: SpanKind.CLIENT, attributes });
    if (error !== undefined) {
      span.setAttribute('db.response.status_code', String(error.code));
      span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
    }
    span.end();
  }
}
