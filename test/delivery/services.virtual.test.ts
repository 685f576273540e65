// The fate of runs for each response of the service.
import '../support/virtual-timers.ts';

import { describe, expect, it, vi } from 'vitest';
import { advance, delivery, onFlush, until } from '../support/delivery.ts';
import { machine } from '../support/processes.ts';
import type { Verdict } from '../support/scripted-service.ts';
import { virtualClock } from '../support/virtual-timers.ts';

const single = { batchRuns: 1, requestsInFlight: 1 };

/** The fate of a batch for the status of its first response. No status loses a run that the service accepts later. */
const statuses = {
  accepted: [200, 201, 202, 204, 207, 299],
  halved: [
    ...[300, 301, 302, 307, 308, 399, 400, 401, 402, 403, 406, 407, 409, 410, 411, 412, 413, 414, 416, 417, 418],
    ...[421, 422, 423, 424, 426, 428, 431, 451, 499],
  ],
  'sent as single runs': [404, 405, 415, 501],
  'sent again': [408, 425, 429, 500, 502, 503, 504, 505, 506, 507, 508, 510, 511, 520, 599, 600, 999],
};

async function fateOf(status: number): Promise<string> {
  const { wholes, flush, close, service, stats } = await delivery({
    limits: onFlush,
    reply: (_, index) => (index === 0 ? status : 202),
  });
  wholes(4);
  await flush();
  const { batches, routes } = service;
  expect(stats()).toMatchObject({ sent: 4, dropped: 0 });
  await close();
  if (batches.length === 1) return 'accepted';
  if (routes.includes('POST /runs')) return 'sent as single runs';
  // Halves, or the others after a probe with one run.
  return batches[1]?.length === 2 ? 'halved' : batches[1]?.length === 1 ? 'sent again' : 'sent whole';
}

it.each(Object.entries(statuses).flatMap(([fate, all]) => all.map((status) => [status, fate] as const)))(
  'a batch whose first response has status %i is %s',
  async (status, fate) => {
    expect(await fateOf(status)).toBe(fate);
  },
);

it('a run from disk that receives 409 is completed by a patch', async () => {
  const { start, deliverRest } = machine();
  const first = await start({ reply: () => 'hold' });
  first.whole('kept');
  first.exit();
  const { service, stats } = await deliverRest({
    reply: ({ names }) => (names.includes('whole kept') ? 409 : 202),
  });
  expect(service.batches.at(-1)).toEqual(['end kept']);
  expect(stats()).toMatchObject({ recovered: 1, sent: 2 });
});

const KEY_REJECTED = 'the API key was rejected; if `apiKey` is a function, it can return a new one without a restart';

describe('a service that rejects the key', () => {
  it.each([
    ['the key', { apiKey: 'k-1' }, KEY_REJECTED],
    ['other credentials', { headers: { Authorization: 'Bearer t-1' } }, KEY_REJECTED],
    ['no key', {}, 'no API key is set, and the service may require one'],
  ])('with %s is reported in one line, and its recovery in another', async (_, credentials, problem) => {
    const { whole, flush, service, lines } = await delivery({ limits: single, options: credentials, reply: () => 401 });
    whole();
    await until(() => service.requests.length === 3);
    service.reply = () => 202;
    await flush();

    expect(lines).toEqual([
      `warn: delivery to ${service.url} failed: status 401: ${problem}; the runs are retried while the process runs`,
      `warn: delivery to ${service.url} works again`,
    ]);
  });

  it('is probed after 1 s, 5 s, 30 s, 2 minutes, then every 5 minutes, and again after 1 s if it had accepted', async () => {
    const limits = { batchRuns: 1, requestsInFlight: 3, ageMs: 3_600_000 };
    const { wholes, service } = await delivery({ limits, reply: (_, at) => (at === 10 ? 202 : 403) });
    wholes(3);
    await until(() => service.requests.length === 14);
    const gaps = service.requests.slice(1).map(({ atMs }, at) => (atMs - (service.requests[at]?.atMs ?? 0)) / 1_000);

    // Concurrent requests count as one probe.
    expect(gaps).toEqual([0, 0, 1, 5, 30, 120, 300, 300, 300, 300, 0, 0, 1]);
  });

  it.each<[Verdict, Verdict]>([
    [403, 302],
    [302, 403],
    [403, 202],
  ])('by %i and then responds with %i receives the runs of a short program', async (...script) => {
    const { wholes, flush } = await delivery({ limits: onFlush, reply: (_, index) => script[index] ?? 202 });
    wholes(3);
    expect(await flush()).toEqual({ ok: true, pending: 0 });
  });

  it.each([
    ['a flush with the second refused probe, 1 s after the first', 'flush', [0, 1_000]],
    ['a close at its timeout, after a probe in each second', 'close', [0, 1_000, 2_000, 3_000]],
  ] as const)('ends %s', async (_, method, probes) => {
    const scene = await delivery({ limits: single, reply: () => 403 });
    scene.whole();
    await until(() => scene.service.requests.length === 4);
    await advance(10_000);
    const beforeMs = virtualClock.nowMs;
    expect(await scene[method]({ timeoutMs: 3_500 })).toEqual({ ok: false, pending: 1 });

    expect(scene.service.requests.slice(4).map(({ atMs }) => atMs - beforeMs)).toEqual(probes);
  });
});

it.each([-86_400_000, 86_400_000])('a wall clock that jumps by %i ms changes no pause', async (jumpMs) => {
  const { whole, service, stats } = await delivery({
    time: { random: () => 0 },
    reply: (_, index) => (index === 0 ? { status: 429, headers: { 'retry-after': '60' } } : 202),
  });
  whole();
  await until(() => service.requests.length === 1);
  const { now } = Date;
  vi.spyOn(Date, 'now').mockImplementation(() => now() + jumpMs);
  await advance(59_999);
  expect(service.requests).toHaveLength(1);
  await advance(1);
  expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
});
