// A refused batch loses only the runs that the service refuses.
import '../support/virtual-timers.ts';

import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Arrival } from '../support/arrivals.ts';
import { forAllAsync } from '../support/campaign.ts';
import { advance, delivery, onFlush, until } from '../support/delivery.ts';
import type { IngestRequest } from '../support/scripted-service.ts';

const padded = (length: number) => ({ inputs: { text: 'x'.repeat(length) } });

describe('a batch that receives 400 or 422', () => {
  it.each([400, 403, 422])(
    'loses only the run at fault, with two requests for each halving and three for the run: %i',
    async (status) => {
      const { wholes, flush, others, service, drops, details } = await delivery({
        limits: onFlush,
        reply: ({ names }) => (names.includes('whole 38') ? status : 202),
      });
      wholes(64);
      await flush();

      expect(service.requests).toHaveLength(15);
      await others();
      expect(drops).toEqual(['rejected 38']);
      expect(details).toEqual([expect.stringContaining(`status ${status}`)]);
    },
  );

  it('loses all malformed runs and no others, at any position', async () => {
    await forAllAsync(25, [fc.array(fc.boolean(), { minLength: 1, maxLength: 12 })], async (isBad) => {
      const bad = new Set(isBad.flatMap((is, at) => (is ? [`whole ${at + 1}`] : [])));
      const { wholes, flush, close, others, drops, stats } = await delivery({
        limits: onFlush,
        reply: ({ names }) => (names.some((name) => bad.has(name)) ? 400 : 202),
      });
      wholes(isBad.length);
      await flush();
      // A run is dropped only if the service accepts others after its failures.
      await others();

      expect(new Set(drops.map((drop) => drop.replace('rejected', 'whole')))).toEqual(bad);
      expect(stats()).toMatchObject({ sent: isBad.length + 3 - bad.size, dropped: bad.size });
      await close();
    });
  });

  it('is kept with few requests if the service accepts no run', async () => {
    let isRefusing = true;
    const { wholes, flush, service, stats } = await delivery({
      limits: { ...onFlush, batchRuns: 100 },
      reply: () => (isRefusing ? 422 : 202),
    });
    wholes(100);
    expect(await flush()).toEqual({ ok: false, pending: 100 });
    expect(service.requests.length).toBeLessThan(40);
    isRefusing = false;
    await flush();

    expect(stats()).toMatchObject({ sent: 100, dropped: 0 });
  });
});

it('a batch that receives 409 is halved, and a single run counts as delivered', async () => {
  const known = new Set<string>();
  const { wholes, flush, service, stats } = await delivery({
    limits: onFlush,
    reply: ({ arrivals }) => {
      if (arrivals.some(({ id }) => known.has(id))) return 409;
      for (const { id } of arrivals) known.add(id);
      return 202;
    },
  });
  const [first] = wholes(8);
  known.add(first?.id ?? '');
  await flush();

  expect(service.arrivals('1').length).toBeGreaterThan(1);
  expect(known.size).toBe(8);
  expect(stats()).toMatchObject({ sent: 8, dropped: 0 });
});

it('a 409 says that a run was stored only if an earlier request may have stored it', async () => {
  const someRuns = fc.array(fc.constantFrom('new', 'new given', 'taken given'), { minLength: 1, maxLength: 6 });
  const ways = fc.record({ isSimple: fc.boolean(), isLost: fc.boolean(), isOpen: fc.boolean() });
  await forAllAsync(100, [someRuns, ways], async (names, { isSimple, isLost, isOpen }) => {
    const stored = new Set<string>();
    let hasLost = !isLost;
    const { start, flush, service, stats, drops } = await delivery({
      limits: onFlush,
      reply: ({ arrivals, isMultipart }) => {
        if (isSimple && isMultipart) return 404;
        const posted = arrivals.filter(({ op }) => op === 'post');
        if (posted.some(({ id, name }) => name?.startsWith('taken') || stored.has(id))) return 409;
        for (const { id } of posted) stored.add(id);
        const isAnswered = hasLost;
        hasLost = true;
        return isAnswered ? 202 : 500;
      },
    });
    const given = (name: string) => name.includes('given') && { id: randomUUID() };
    const runs = names.map((name) => start(name, { ...given(name) }));
    if (isOpen) await flush();
    for (const run of runs) run.end({});
    await flush();

    const taken = names.filter((name) => name.startsWith('taken'));
    expect(stats()).toMatchObject({ open: 0, sent: names.length - taken.length, dropped: taken.length });
    expect(drops.toSorted()).toEqual(taken.map((name) => `repeated ${name}`));
    expect(
      service.requests
        .flatMap(({ arrivals }) => arrivals)
        .filter((one) => one.op === 'patch' && one.name?.startsWith('taken')),
    ).toEqual([]);
  });
});

it.each([202, 404])(
  'a gateway that repeats the first request of a run (multipart: %i) does not cost its outputs',
  async (status) => {
    const stored = new Set<string>();
    const { start, flush, service, stats } = await delivery({
      limits: onFlush,
      reply: ({ arrivals, isMultipart }) => {
        if (isMultipart && status === 404) return 404;
        const posted = arrivals.filter(({ op }) => op === 'post');
        for (const { id } of posted) stored.add(id);
        return posted.length > 0 ? 409 : 202;
      },
    });
    for (const name of ['one', 'other']) start(name).end({ answer: 1 });
    await flush();
    const open = start('open');
    await flush();
    open.end({ answer: 2 });
    await flush();
    expect(stats()).toMatchObject({ sent: 3, dropped: 0 });
    const patches = service.requests.flatMap(({ arrivals }) => arrivals).filter(({ op }) => op === 'patch');
    expect(patches.map(({ fields }) => fields.outputs)).toEqual([1, 1, 2].map((answer) => ({ answer })));
  },
);

it('a run with a generated id that receives 409 at its first request and for its patch is rejected', async () => {
  const { whole, flush, stats, details } = await delivery({
    limits: onFlush,
    reply: () => ({ status: 409, body: '{"detail":"run exists"}' }),
  });
  whole('generated');
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  expect(stats()).toMatchObject({ sent: 0, droppedByReason: { rejected: 1, repeated: 0 } });
  expect(details).toEqual(['status 409, "run exists"']);
});

describe('a batch that receives 413', () => {
  it('limits later batches to half its size, which grows by a hundredth with each full batch', async () => {
    const { whole, flush, service } = await delivery({
      limits: onFlush,
      reply: ({ body }) => (body.length > 500_000 ? 413 : 202),
    });
    for (let count = 0; count < 60; count++) whole('r', padded(9_000));
    await flush();
    const half = (service.requests[0]?.body.length ?? 0) / 2;
    const sizes = async (): Promise<number> => {
      const { length } = service.requests;
      for (let count = 0; count < 60; count++) whole('r', padded(9_000));
      await flush();
      return Math.max(...service.requests.slice(length).map(({ body }) => body.length));
    };
    const first = await sizes();
    expect(first).toBeLessThanOrEqual(half * 1.03);
    expect(first).toBeGreaterThan(half * 0.9);
    let last = first;
    for (let round = 0; round < 20; round++) last = await sizes();
    expect(last).toBeGreaterThan(first * 1.1);
    expect(last).toBeLessThanOrEqual(half * 1.01 ** 60);
  });

  const marker = { runspan: expect.any(String) };
  it.each<[string, (run?: Arrival) => boolean, object]>([
    ['without attachments', (run) => run?.attachments.size === 0, { q: 1 }],
    ['with markers for its payloads', (run) => run?.fields.inputs?.q === undefined, marker],
    ['never', () => false, marker],
  ])('of a single run is reduced until the service accepts it: %s', async (accepted, isAccepted, inputs) => {
    const { start, flush, others, service, drops, stats } = await delivery({
      limits: onFlush,
      reply: ({ names, arrivals: [run] }) => (names[0] === 'whole good' || isAccepted(run) ? 202 : 413),
    });
    const run = start('large', { inputs: { q: 1 } });
    run.attach('a', Buffer.alloc(10), 'image/png');
    run.end({ a: 1 });
    await flush();
    await others();
    const last = service.arrivals('large').at(-1);

    expect(last?.attachments.size).toBe(0);
    expect(last?.fields.inputs).toEqual(inputs);
    expect(last?.fields.extra?.metadata?.dropped_attachments).toBe(1);
    expect(drops).toEqual(accepted === 'never' ? ['too_large large'] : []);
    expect(stats()).toMatchObject(accepted === 'never' ? { sent: 3, dropped: 1 } : { sent: 4 });
  });
});

it('an upload that breaks twice counts as too large for a batch of 1 MiB or more', async () => {
  for (const [runs, length, isHalved] of [
    [2, 800_000, true],
    [2, 200_000, false],
    [1, 1_600_000, false],
  ] as const) {
    const { whole, service, stats } = await delivery({ limits: { ...onFlush, batchRuns: runs } });
    service.cut = { bytes: 100_000, times: 2 };
    for (let count = 0; count < runs; count++) whole('r', padded(length));
    await until(() => stats().sent === runs);

    expect(service.cut.times).toBe(0);
    expect(service.batches.map((names) => names.length)).toEqual(isHalved ? [1, 1] : Array(runs).fill(1));
    for (const { fields } of service.arrivals('r')) expect(fields.inputs).toHaveProperty('text');
  }
});

it('a compressed batch that receives 415 is sent again uncompressed, like all later batches', async () => {
  const { whole, flush, service, stats } = await delivery({
    limits: onFlush,
    compress: true,
    info: { status: 200, body: '{"instance_flags":{"gzip_body_enabled":true,"zstd_compression_enabled":true}}' },
    reply: ({ headers }) => (headers['content-encoding'] === undefined ? 202 : 415),
  });
  const isCompressed = ({ headers }: IngestRequest): boolean => headers['content-encoding'] !== undefined;
  // A slow response to /info misses its deadline in virtual time, and is asked for again.
  while (!service.requests.some(isCompressed)) {
    whole('first', padded(300_000));
    await flush();
    await advance(40_000);
  }
  whole('second', padded(300_000));
  await flush();

  expect(service.requests.filter(isCompressed)).toHaveLength(1);
  expect(service.requests.length - service.requests.findIndex(isCompressed)).toBe(3);
  expect(stats().sent).toBe(stats().created);
});

it('status 200 with a web page counts as delivered, and one line reports it', async () => {
  const { whole, flush, lines, stats } = await delivery({
    reply: () => ({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>' }),
  });
  for (let count = 0; count < 2; count++) {
    whole();
    await flush();
  }
  expect(stats()).toMatchObject({ sent: 2 });
  expect(lines.filter((line) => line.includes('web page'))).toHaveLength(1);
});
