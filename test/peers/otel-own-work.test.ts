// All instrumentations of OpenTelemetry record a program, also its files, DNS lookups and connections. The work of
// runspan in the same process must not be among the recorded.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { ingestServerInTest } from '../support/ingest-server.ts';
import { runNames } from '../support/multipart-reader.ts';
import { moduleText, startProgram } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';
import { laterNode } from './later-node.ts';

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const sdk = ['--import', file('otel-own-work-sdk.mjs')];
const register = ['--import', 'runspan/register'];

interface Printed {
  readonly spans: readonly string[];
  /** Time from the last work of the program to the end of the process. */
  readonly lingerMs: number;
}

/** How long the exporter may hold a finished program: 2 seconds. */
const EXIT_FLUSH_MS = 2_000;

const start = async (args: readonly string[], env?: Readonly<Record<string, string>>): Promise<string> => {
  const { code, signal, stdout, stderr } = await startProgram([laterNode(), ...args], env).ended;
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
  return stdout;
};

/** Runs a program that sends its runs to a service. `<service>` in `env` stands for the address of the service. */
async function traced(args: readonly string[], env: Readonly<Record<string, string>>) {
  const service = await ingestServerInTest();
  // By name, so that the exporter looks up the host.
  const url = service.url.replace('127.0.0.1', 'localhost');
  const given = Object.entries({ RUNSPAN_ENDPOINT: '<service>', ...env });
  const variables = Object.fromEntries(given.map(([name, value]) => [name, value.replace('<service>', url)]));
  const stdout = await start(args, { HOME: testFolder(), ...variables });
  const runs = service.received.filter(({ path }) => path === '/runs/multipart').flatMap(runNames);
  return { stdout, runs: runs.sort(), exporters: service.infos };
}

describe('with all instrumentations', () => {
  const program = file('otel-own-work-program.mjs');
  let bare: Printed;

  beforeAll(async () => {
    bare = JSON.parse(await start([...sdk, program]));
  });

  test('the program has spans of its files, DNS lookups, connections and requests', () => {
    const names = ['GET', 'dns.lookup', 'fs existsSync', 'fs readFile', 'fs stat', 'tcp.connect', 'work'];
    expect(bare.spans).toEqual(expect.arrayContaining(names));
  });

  // By default, the runs are the request that the program serves, and the span above it. The durability `write-ahead` has
  // all file operations of the others.
  test.each([
    ['RunSpanProcessor', 'write-ahead', sdk, 'ours', undefined],
    ['RunSpanProcessor', 'spill', sdk, 'ours', undefined],
    ['runspan/register before the SDK', 'write-ahead', [...register, ...sdk], '', ['GET', 'work']],
    ['runspan/register after the SDK', 'memory', [...sdk, ...register], '', ['GET', 'work']],
  ])(
    '%s with the durability %s adds no spans and records those that it selects, with one exporter, and holds the process no longer than its flush',
    async (_, durability, before, processor, selected) => {
      // On a busy machine, the start of a run would be sent before its end, which would count the run twice.
      const env = { RUNSPAN_DURABILITY: durability, PROCESSOR: processor, RUNSPAN_DEV: '{"startDelayMs":60000}' };
      const { stdout, runs, exporters } = await traced([...before, program], env);
      const { spans, lingerMs }: Printed = JSON.parse(stdout);
      expect(spans).toEqual(bare.spans);
      // The run of a request is named after its URL.
      expect(runs.map((name) => name.replace(/^GET .*/, 'GET'))).toEqual(selected ?? bare.spans);
      expect(exporters).toBe(1);
      expect(lingerMs).toBeLessThan(bare.lingerMs + EXIT_FLUSH_MS);
    },
  );
});

test('a program with the SDK of auto-instrumentations-node and runspan/register ends, and has its model calls once', async () => {
  const require = createRequire(new URL('./today/package.json', import.meta.url));
  const instrumented = ['--require', require.resolve('@opentelemetry/auto-instrumentations-node/register')];
  const code = `
    import { createRequire } from 'node:module';
    const { trace } = createRequire(${JSON.stringify(import.meta.url)})('./today/node_modules/@opentelemetry/api');
    trace.getTracer('gen_ai').startActiveSpan('ask', (span) => {
      createRequire(import.meta.url)('fs').existsSync('/');
      span.end();
    });
    setTimeout(() => {}, 500);`;
  const { runs, exporters } = await traced([...instrumented, ...register, ...moduleText(code)], {
    OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'fs,http',
    OTEL_NODE_RESOURCE_DETECTORS: 'none',
    OTEL_EXPORTER_OTLP_ENDPOINT: '<service>',
  });
  expect(runs).toEqual(['ask']);
  expect(exporters).toBe(1);
});
