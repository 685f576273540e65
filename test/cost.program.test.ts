// Counted costs of a run, which do not depend on the load of the machine.
import { describe, expect, it } from 'vitest';
import { ingestServer } from './support/ingest-server.ts';
import { runNode } from './support/program.ts';

const RUNS = 2_000;
const PER_BATCH = RUNS / 100;
const JSON_ATTRIBUTES = 2;

type Counts = Readonly<Record<string, number>>;

async function costOf(kind: string): Promise<{ bare: Counts; traced: Counts; bodyBytes: number }> {
  await using server = await ingestServer();
  const { code, stdout, stderr } = await runNode(['test/fixtures/cost-program.mjs', kind, String(RUNS)], {
    RUNSPAN_ENDPOINT: server.url,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const bodyBytes = server.received.reduce((bytes, { body }) => bytes + body.length, 0);
  return { ...(JSON.parse(stdout) as { bare: Counts; traced: Counts }), bodyBytes };
}

describe.each(['traceable', 'processor'])('a run by %s', (kind) => {
  const measuring = costOf(kind);
  const extra = async (name: string): Promise<number> => {
    const { bare, traced } = await measuring;
    return (traced[name] as number) - (bare[name] as number);
  };

  it('reads its payload at most twice: for the check and for the JSON text', async () => {
    const readsPerRun = (await extra('reads')) / RUNS;
    expect(readsPerRun).toBeGreaterThanOrEqual(kind === 'traceable' ? 1 : 0);
    expect(readsPerRun).toBeLessThanOrEqual(kind === 'traceable' ? 2 : 0);
  });
  it('writes its bytes once into its request, and does not copy them', async () => {
    const { bodyBytes } = await measuring;
    const perByte = (await extra('written')) / bodyBytes;
    expect(perByte).toBeGreaterThan(0.8);
    expect(perByte).toBeLessThan(1.5);
    expect(await extra('copied')).toBeLessThan(PER_BATCH * 1_000);
  });
  it('stringifies only its payloads, and parses each JSON attribute once', async () => {
    const attributes = kind === 'processor' ? RUNS * JSON_ATTRIBUTES : 0;
    expect(await extra('parsed')).toBeLessThan(attributes + PER_BATCH);
    expect((await extra('stringified')) / RUNS).toBeLessThan(3);
  });
  it('adds no entry to a WeakMap', async () => {
    expect((await extra('weak')) / RUNS).toBeLessThan(0.1);
  });
  it('enters its context once, if it has one', async () => {
    expect(await extra('entered')).toBe(kind === 'traceable' ? RUNS : 0);
  });
  it('creates one promise, for its call', async () => {
    const perRun = (await extra('promises')) / RUNS;
    expect(Math.floor(perRun)).toBe(kind === 'traceable' ? 1 : 0);
    expect(perRun % 1).toBeLessThan(0.75);
  });
  it('has no separate timer and no separate turn of the event loop', async () => {
    expect(await extra('timers')).toBeLessThan(PER_BATCH * 4);
    expect(await extra('immediates')).toBeLessThan(PER_BATCH * 4);
  });
  it('shares its request for random bytes with many others', async () => {
    expect(await extra('random')).toBeLessThan(RUNS / 100);
  });
});
