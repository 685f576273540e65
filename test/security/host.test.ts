import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Stats } from '../../src/export/ledger.ts';
import { addsUp } from '../support/adds-up.ts';
import { root } from '../support/folders.ts';
import { type IngestServer, ingestServer } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { runNode } from '../support/program.ts';

const PROGRAM = join(root, 'test/security/programs/host.mjs');

interface Told {
  readonly left: Stats;
  /** Lines of ours. */
  readonly lines: readonly string[];
  readonly server: IngestServer;
}

/** Runs the program on such a host; what the application itself got out of it has to be right in any case. */
async function runOn(
  properties: Record<string, unknown>,
  when = 'before',
  flags: readonly string[] = [],
  shutdownMs = 10_000,
): Promise<Told> {
  const server = await ingestServer();
  onTestFinished(() => server.close());
  const { code, stdout, stderr } = await runNode([
    ...flags,
    PROGRAM,
    JSON.stringify(properties),
    when,
    server.url,
    `${shutdownMs}`,
  ]);
  expect(stderr).not.toContain('    at ');
  expect(code).toBe(0);
  const { left, ...application } = JSON.parse(stdout);
  expect(application).toEqual({ answer: 'hello', isSame: true, list: [0, 1, 2], inside: true, remote: true });
  expect(addsUp(left)).toBe(true);
  return { left, lines: stderr.split('\n').filter((line) => line.startsWith('runspan: ')), server };
}

/** Everything arrived as on any other host. */
function expectDelivered({ left, lines, server }: Told): void {
  expect(lines).toEqual([]);
  expect(left).toMatchObject({ created: left.sent, dropped: 0 });
  const parts = server.received.flatMap((request) => [...readJsonParts(request)]);
  const records = parts.filter(([name]) => /^post\.[^.]+$/.test(name)).map(([, json]) => json as { name: string });
  const names = ['by hand', 'identity', 'inner', 'items', 'outer'];
  expect(
    records
      .map(({ name }) => name)
      .filter((name) => name !== 'first')
      .sort(),
  ).toEqual(names);
  expect(JSON.stringify(parts)).not.toContain('polluted');
  expect(JSON.stringify(parts)).toContain('{"q":"hello","password":"[Redacted]"}');
  for (const { headers } of server.received) expect(headers).not.toHaveProperty('x-api-key');
}

/** The names of our options, and of those of what we build upon. */
const OPTIONS = [
  'apiKey',
  'workspaceId',
  'headers',
  'dispatcher',
  'redact',
  'hideInputs',
  'sampler',
  'onDrop',
  'tracing',
];
const OF_RUNS = ['enabled', 'exporter', 'id', 'root', 'tags', 'metadata', 'inputs', 'outputs', 'isOff'];
const OF_REQUESTS = ['query', 'upgrade', 'servername', 'maxRedirections', 'throwOnError', 'expectContinue', 'blocking'];
const all = (names: readonly string[], value: unknown) => Object.fromEntries(names.map((name) => [name, value]));

/** What it is, what is put on all objects, and when. */
type Host = [string, Record<string, unknown>, string?];

const HARMLESS: readonly Host[] = [
  ['`apiKey`', { apiKey: 'polluted' }],
  ['`then` that is no function', all(['then'], 'polluted')],
  ['`toJSON`', { toJSON: 'function' }],
  ['options of exporters', all(OPTIONS, 'polluted')],
  ['options of runs', all(OF_RUNS, 'polluted')],
  ['callbacks of runs', all(['inputs', 'outputs', 'aggregate', 'sampler', 'onDrop', 'log'], 'function')],
  ['options of requests', all(OF_REQUESTS, 'polluted')],
  ['`get`, once connected', { get: 'function' }, 'sent'],
  ['`set`, once connected', { set: 'polluted' }, 'sent'],
  ['`value`, once connected', { value: 'polluted' }, 'sent'],
];

/** With these on all objects undici cannot be loaded, nor can parts of Node. */
const OBSTRUCTING: readonly Host[] = [
  ['`get`', { get: 'polluted' }],
  ['`get` that is a function', { get: 'function' }],
  ['`set`', { set: 'polluted' }],
  ['`value`', { value: 'polluted' }, 'after'],
];

describe('on a host that has put things on all objects', () => {
  test.each<Host>(HARMLESS)('%s: all is delivered, as anywhere [security 12]', async (_, properties, when) => {
    expectDelivered(await runOn(properties, when));
  });

  test.each<Host>(OBSTRUCTING)(
    '%s: the application goes on, and lines say what became of the runs [security 12]',
    async (_, properties, when) => {
      const { left, lines, server } = await runOn(properties, when, [], 1_500);
      expect(server.received).toEqual([]);
      expect(left).toMatchObject({ created: 5, dropped: 5 });
      expect(lines).toHaveLength(2);
      expect(lines[0]).toMatch(/^runspan: delivery to \S+ failed: .*the runs are kept and sent again$/);
      expect(lines[1]).toMatch(/^runspan: 5 runs were dropped \(closed\)/);
    },
  );

  test('tracing works, or says in lines that it does not [fault 83]', async () => {
    const names = ['apiKey', 'toJSON', 'then', ...OF_RUNS, ...OF_REQUESTS];
    expectDelivered(await runOn(all(names, 'polluted')));
    expect((await runOn({ get: 'polluted', set: 'polluted' }, 'before', [], 1_500)).lines).toHaveLength(2);
  });
});

const { allowedNodeEnvironmentFlags: known } = process;
const permission = known.has('--permission') ? '--permission' : '--experimental-permission';
/** Nothing may be written; what is not restricted in this version cannot be allowed either. */
const PERMISSIONS = [permission, '--allow-fs-read=*', ...(known.has('--allow-net') ? ['--allow-net'] : [])];

const HOSTS: readonly (readonly string[])[] = [
  ['--disable-proto=throw'],
  ['--disable-proto=delete'],
  ['--disallow-code-generation-from-strings'],
  ['--unhandled-rejections=strict'],
  ['--frozen-intrinsics'],
  PERMISSIONS,
];

test.each(HOSTS.map((flags) => [flags]))('works under %j [fault 106]', async (flags) => {
  expectDelivered(await runOn({}, 'before', flags));
});

test('works without prototypes that can be changed, and without code made of text [security 12]', async () => {
  expectDelivered(await runOn({}, 'before', ['--disable-proto=throw', '--disallow-code-generation-from-strings']));
});
