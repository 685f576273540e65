import { expect, test } from 'vitest';
import {
  type ConfigureOptions,
  createExporter,
  fromHeaders,
  redact,
  runIdFrom,
  startRun,
  traceable,
  withRun,
} from '#src/index.ts';
import { environmentOf, tune } from '../support/environment.ts';
import type { Reply } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { service } from './service.ts';

const ROUNDS = 300;
const canary = (round: number): string => `canary-${round}`;

/** Calls every function with invalid arguments that contain a new text. */
function misuse(round: number, exporter: ReturnType<typeof createExporter>): void {
  const text = canary(round);
  const anything = { [text]: text };
  const run = startRun({
    name: text,
    exporter,
    inputs: text as never,
    metadata: [text] as never,
    tags: text as never,
    id: text,
    runType: 5 as never,
  });
  run.set(text as never);
  run.set({ tags: [5 as never], metadata: text as never });
  run.event(text, text as never);
  run.attach(`${text}.png`, Buffer.from(text), 'image/png');
  run.attach(text, text as never);
  run.attach(text, Buffer.from(text), text);
  run.attach('twice', Buffer.from(text));
  run.attach('twice', Buffer.from(text));
  run.child(text as never).end(text as never);
  withRun(anything as never, () => {});
  fromHeaders(Promise.resolve(anything) as never);
  fromHeaders({ 'runspan-trace': text, baggage: `runspan-tags=${text}` });
  runIdFrom(anything as never);
  traceable(text as never);
  traceable((value: unknown) => value, { name: 'f', inputs: () => Promise.resolve(anything) as never, exporter })(
    anything,
  );
  traceable((value: unknown) => value, text as never)(anything);
  void exporter.flush(anything as never);
  run.fail(new Error(text));
}

const fail = (): never => {
  throw new Error('broken');
};

const SERVICES: readonly (readonly [string, Reply, ConfigureOptions])[] = [
  ['accepts all runs', { status: 202 }, {}],
  ['rejects all runs', { status: 400 }, {}],
  ['answers that each run is too large', { status: 413 }, {}],
  ['fails', { status: 500 }, {}],
  ['rejects the key', { status: 401 }, {}],
  ['accepts single runs only', { status: 404 }, {}],
  ['is slower than the application', { status: 202 }, { limits: { queueRuns: 1 } }],
  ['fails, with a redaction that throws', { status: 500 }, { redact: redact({ patterns: [/canary/], replace: fail }) }],
];

test.each(SERVICES)(
  'repeated failures are logged in a few lines without application data if the service %s [security 17]',
  async (_, reply, options) => {
    const { server, lines } = await service(() => reply);
    tune({ retryDelayMs: 1, retryDelayMaxMs: 1 });
    const exporter = createExporter({ endpoint: server.url, ...options });
    for (let round = 0; round < ROUNDS; round++) misuse(round, exporter);
    await exporter.close({ timeoutMs: 200 });
    const seen = lines.filter((line) => !line.startsWith('debug: '));
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.length).toBeLessThan(40);
    expect(seen.filter((line) => line.includes('canary'))).toEqual([]);
  },
);

test('a log line has no line breaks and no terminal commands [security 17]', () => {
  environmentOf();
  const lines = logLines();
  startRun({ name: 'a', 'x\r\nrunspan: forged\u001b[2J\u2028\u0000': 1 } as never);
  expect(lines).toHaveLength(1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
  expect(lines[0]).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
});
