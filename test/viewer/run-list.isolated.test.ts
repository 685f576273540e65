import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { api, isLocked } from '#src/viewer/data/api.ts';
import { listenForChanges } from '#src/viewer/data/changes.ts';
import { type Line, RunList } from '#src/viewer/list/run-list.ts';
import { gate } from '../support/gate.ts';
import { FakeStream, fakeBrowser } from './fake-browser.ts';

const PAGE = 100;

function openList(count: number, view: 'traces' | 'runs' = 'traces') {
  const traces = Array.from({ length: count }, (_, index) => lineOf(count - index));
  const requests: URL[] = [];
  const held = new Map<string, Promise<void>>();
  const answers = fakeBrowser();
  answers.body = async (url) => {
    requests.push(url);
    const given = url.searchParams;
    const cursor = given.get('cursor') ?? undefined;
    const id = given.get('trace_id');
    const all = id === null ? traces : traces.filter(({ trace_id }) => trace_id === id);
    const from = cursor === undefined ? 0 : all.findIndex((one) => one.id === cursor) + 1;
    const items = all.slice(from, from + Number(given.get('limit'))).map((one) => ({ ...one }));
    const next = from + items.length < all.length ? items.at(-1)?.id : undefined;
    await held.get(cursor ?? id ?? '');
    return { items, next };
  };
  void listenForChanges();
  FakeStream.last.emit('open');
  const list = new RunList<Line>(api[view], () => new URLSearchParams());
  list.open();
  onTestFinished(() => list.close());
  const arrive = (added: number): void => {
    const last = Number(traces[0]?.id ?? 0);
    for (let index = 1; index <= added; index++) traces.unshift(lineOf(last + index));
    announce('new');
  };
  return { list, traces, requests, held, arrive };
}

function lineOf(number: number) {
  const id = `${number}`;
  return { id, trace_id: id, name: 'a', run_type: 'chain', status: 'success', start_time: '2026-11-20T07:00:00Z' };
}

function announce(...traceIds: string[]): void {
  FakeStream.last.emit('change', traceIds.length === 0 ? {} : { trace_ids: traceIds });
}

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1_000);
const idsOf = (list: RunList): string[] => list.lines.value.map(({ id }) => id);

async function grow(list: RunList): Promise<void> {
  list.grow();
  await settled();
}

beforeEach(() => {
  vi.useFakeTimers();
  isLocked.value = false;
});

test('a changed row out of sight is read again once, when it becomes visible', async () => {
  const { list, traces, requests } = openList(250);
  await settled();
  await grow(list);
  const changed = traces[150] as (typeof traces)[number];
  changed.status = 'error';
  announce(changed.id);
  await settled();
  const current = () => list.lines.value.find(({ id }) => id === changed.id);
  expect(current()?.status).toBe('success');
  list.see(list.lines.value.slice(140, 160), false);
  await settled();
  expect(current()?.status).toBe('error');
  const before = requests.length;
  list.see(list.lines.value.slice(140, 160), false);
  await settled();
  expect(requests).toHaveLength(before);
});

test('after an unknown change all visible rows are read again', async () => {
  const { list, traces } = openList(250);
  await settled();
  await grow(list);
  for (const one of traces) one.status = 'error';
  list.see(list.lines.value.slice(100, 160), false);
  announce();
  await settled();
  expect(list.lines.value.slice(0, 160).every(({ status }) => status === 'error')).toBe(true);
});

test('a failed read is repeated with the next change', async () => {
  const { list, traces, held } = openList(250);
  await settled();
  await grow(list);
  list.see(list.lines.value.slice(140, 160), false);
  const changed = traces[150] as (typeof traces)[number];
  changed.status = 'error';
  held.set(changed.id, Promise.reject(new TypeError('fetch failed')));
  announce(changed.id);
  await settled();
  expect(list.problem.value).toBe('The receiver does not respond. Check whether the receiver is running.');
  held.clear();
  announce('another');
  await settled();
  expect(list.lines.value[150]?.status).toBe('error');
  expect(list.problem.value).toBeUndefined();
});

test('a page that was requested before the list was cut is dropped', async () => {
  const { list, held, traces, arrive } = openList(500);
  await settled();
  const released = gate();
  held.set(idsOf(list).at(-1) as string, released);
  list.grow();
  arrive(PAGE + 50);
  await settled();
  released.open();
  await settled();
  expect(idsOf(list)).toEqual(traces.slice(0, PAGE).map(({ id }) => id));
  await grow(list);
  expect(idsOf(list)).toEqual(traces.slice(0, 2 * PAGE).map(({ id }) => id));
});

test.each([
  [PAGE - 1, false],
  [PAGE, true],
])('%i new rows at once remove no rows that were read, and are shown at the top', async (count, isBehind) => {
  const { list, traces, arrive } = openList(300);
  await settled();
  await grow(list);
  list.see(list.lines.value.slice(50, 80), false);
  const before = idsOf(list);
  arrive(count);
  await settled();
  expect(list.isBehind.value).toBe(isBehind);
  expect(idsOf(list).slice(-before.length)).toEqual(before);
  list.see(list.lines.value.slice(0, 30), true);
  await settled();
  expect(list.isBehind.value).toBe(false);
  expect(idsOf(list).slice(0, PAGE)).toEqual(traces.slice(0, PAGE).map(({ id }) => id));
});

test('a list that stays at its top is cut', async () => {
  const { list, arrive } = openList(10);
  await settled();
  for (let time = 0; time < 60; time++) {
    arrive(50);
    await settled();
    expect(list.lines.value.length).toBeLessThanOrEqual(2_000 + PAGE);
  }
  expect(list.hasMore).toBe(true);
});

test('rows of a trace with more runs than one read returns stay', async () => {
  const { list, traces } = openList(1_300, 'runs');
  for (const one of traces) one.trace_id = 'large';
  await settled();
  for (let page = 1; page < 13; page++) await grow(list);
  list.see(list.lines.value.slice(1_200, 1_230), false);
  announce('large');
  await settled();
  expect(list.lines.value).toHaveLength(1_300);
});

test('a list that is opened again keeps its rows, and reads the first page again', async () => {
  const { list, traces, requests, arrive } = openList(250);
  await settled();
  await grow(list);
  list.close();
  arrive(2);
  await settled();
  expect(requests).toHaveLength(2);
  expect([list.lines.value.length, list.isLoading.value]).toEqual([2 * PAGE, true]);
  list.open();
  await settled();
  expect(requests).toHaveLength(3);
  expect(idsOf(list)).toEqual(traces.slice(0, 2 * PAGE + 2).map(({ id }) => id));
  expect(list.isLoading.value).toBe(false);
});

test('a list that could not be read shows no error when it is opened again', async () => {
  const { list, held } = openList(1);
  await settled();
  held.set('', Promise.reject(new TypeError('fetch failed')));
  announce('another');
  await settled();
  expect(list.problem.value).toBe('The receiver does not respond. Check whether the receiver is running.');
  list.close();
  expect([list.problem.value, list.isLoading.value]).toEqual([undefined, true]);
});
