import { afterAll, describe, expect, it } from 'vitest';
import { type Exporter, type Run, startRun } from '../../src/index.ts';
import { addsUp } from '../support/adds-up.ts';
import { type FaultPlace, Network } from './network.ts';
import { NETWORK_FAULTS, type NetworkFault } from './network-faults.ts';
import { neverReached, table, tally } from './report.ts';

/** Runs that are posted and patched apart, and whole ones. */
const LONG = 6;
const WHOLE = 14;
/** Of four records at the most: the posts of the long runs, then everything else. */
const REQUESTS = 7;

const FLUSH = { timeoutMs: 30_000 };

const PLACES: readonly (readonly [string, FaultPlace])[] = [
  ...Array.from({ length: REQUESTS }, (_, index) => [`request ${index + 1} of ${REQUESTS}`, index] as const),
  ['GET /info', 'info'],
];

const reached = new Map<string, number>(NETWORK_FAULTS.map(({ name }) => [name, 0]));
const runs = new Map<string, number>([['lost', 0]]);

it('without a fault there are as many requests as is counted on', async () => {
  const network = await recordOver(undefined, 0);
  expect(network.server.requests).toBe(REQUESTS);
  expectAll(network);
});

/**
 * Everything that was created has arrived, whole, in a request that the client was told of, and no patch before the post of
 * its run. Nothing was dropped, and nothing is anywhere else.
 */
describe.each(PLACES)('at %s', (_, place) => {
  const faults = NETWORK_FAULTS.filter((fault) => place !== 'info' || isOfAnyRequest(fault));

  it.concurrent.each(faults.map((fault) => [fault.name, fault] as const))('%s loses nothing', async (name, fault) => {
    const network = await recordOver(fault, place);
    tally(reached, name, network.reached);
    expect(network.reached).toBeGreaterThan(0);
    expectAll(network);
  });
});

it('every fault was reached', () => {
  expect(neverReached(reached)).toEqual([]);
});

/** Whether it can happen to a request that is as short as `GET /info`. */
function isOfAnyRequest(fault: NetworkFault): boolean {
  return fault.kind === 'answer' || (fault.kind === 'request' && fault.bytes < 100);
}

/** Records runs, and waits until the service has them. */
async function recordOver(fault: NetworkFault | undefined, place: FaultPlace): Promise<Network> {
  const network = new Network(fault, place);
  await network.open();
  try {
    const exporter = network.connect('old-key');
    const begun = Array.from({ length: LONG }, (_, number) => begin(exporter, `long ${number}`, fault));
    await exporter.flush(FLUSH);
    for (const run of begun) finish(run);
    for (let number = 0; number < WHOLE; number++) finish(begin(exporter, `whole ${number}`, fault));
    if (fault?.kind === 'key') await changeKey(network, exporter);
    else expect(await exporter.flush(FLUSH)).toEqual({ ok: true, pending: 0 });
    await network.server.acknowledged(createdOver(network));
    await network.exporters.at(-1)?.flush(FLUSH);
  } finally {
    await network.close();
  }
  return network;
}

/** The first exporter leaves to the disk what it is not allowed to send, and another one takes it over. */
async function changeKey(network: Network, exporter: Exporter): Promise<void> {
  await network.noticed;
  await exporter.close({ timeoutMs: 0 });
  finish(begin(network.connect('new-key'), 'after the change', undefined));
}

function begin(exporter: Exporter, name: string, fault: NetworkFault | undefined): Run {
  const bytes = fault?.kind === 'request' ? (fault.payloadBytes ?? 1_000) : 1_000;
  return startRun({ name, exporter, root: true, inputs: { question: name, text: 'x'.repeat(bytes) } });
}

function finish(run: Run): void {
  run.end({ answer: run.name });
}

function createdOver({ exporters }: Network): number {
  return exporters.reduce((sum, exporter) => sum + exporter.stats().created, 0);
}

function expectAll(network: Network): void {
  const { arrivals, ended, disagreements } = network.server;
  const created = createdOver(network);
  tally(runs, 'created', created);
  tally(runs, 'arrived', ended.size);
  tally(runs, 'lost', created - ended.size);
  tally(
    runs,
    'records that came more than once',
    arrivals.length - new Set(arrivals.map(({ op, id }) => op + id)).size,
  );
  expect(ended.size).toBe(created);
  expect(disagreements).toEqual([]);
  expectInOrder(network);
  for (const id of ended) expectWhole(network, id);

  const ledgers = network.exporters.map((exporter) => exporter.stats());
  for (const ledger of ledgers) {
    expect(addsUp(ledger)).toBe(true);
    expect(ledger).toMatchObject({ open: 0, queued: 0, inFlight: 0, dropped: 0 });
  }
  const [first, second] = ledgers;
  // What one has left to the disk is what the other has found there.
  expect(first?.spooled).toBe(second?.recovered ?? 0);
  expect(ledgers.reduce((sum, { sent }) => sum + sent, 0)).toBe(created);
}

function expectInOrder({ server }: Network): void {
  const posted = new Set<string>();
  for (const { op, id, isAcknowledged } of server.arrivals) {
    if (op === 'patch') expect(posted).toContain(id);
    else if (isAcknowledged) posted.add(id);
  }
}

function expectWhole({ server }: Network, id: string): void {
  const records = server.arrivals.filter((arrival) => arrival.id === id);
  const name = records[0]?.main.name;
  const inputs = records.find((record) => record.inputs !== undefined)?.inputs;
  const outputs = records.find((record) => record.outputs !== undefined)?.outputs;
  expect(JSON.parse(inputs ?? '{}')).toMatchObject({ question: name });
  expect(JSON.parse(outputs ?? '{}')).toEqual({ answer: name });
}

afterAll(() => {
  console.log([table('Faults, and how often each happened:', reached), table('Runs:', runs)].join('\n\n'));
});
