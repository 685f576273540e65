import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { isLocked } from '../../src/viewer/data/api.ts';
import { listen } from '../../src/viewer/data/changes.ts';
import { RunList } from '../../src/viewer/list/run-list.ts';
import { FakeStream, fakeBrowser } from './fake-browser.ts';

const PAGE = 100;

/** A receiver with traces, the latest first, and a list of them. */
function opened(count: number, view: 'traces' | 'runs' = 'traces') {
  const traces = Array.from({ length: count }, (_, index) => lineOf(count - index));
  const asked: URL[] = [];
  const held = new Map<string, Promise<void>>();
  const { answers } = fakeBrowser();
  answers.body = async (url) => {
    asked.push(url);
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
  void listen();
  FakeStream.last.emit('open');
  const list = new RunList(view, new URLSearchParams());
  onTestFinished(() => list.end());
  const arrive = (added: number): void => {
    const last = Number(traces[0]?.id ?? 0);
    for (let index = 1; index <= added; index++) traces.unshift(lineOf(last + index));
    tell('new');
  };
  return { list, traces, asked, held, arrive };
}

function lineOf(number: number) {
  const id = `${number}`;
  return { id, trace_id: id, name: 'a', run_type: 'chain', status: 'success', start_time: '2026-11-20T07:00:00Z' };
}

function tell(...traceIds: string[]): void {
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
  onTestFinished(() => void vi.useRealTimers());
});

test('a line that has changed out of sight is read again when it is seen, once', async () => {
  const { list, traces, asked } = opened(250);
  await settled();
  await grow(list);
  const changed = traces[150] as (typeof traces)[number];
  changed.status = 'error';
  tell(changed.id);
  await settled();
  const shown = () => list.lines.value.find(({ id }) => id === changed.id);
  expect(shown()?.status).toBe('success');
  list.see(list.lines.value.slice(140, 160), false);
  await settled();
  expect(shown()?.status).toBe('error');
  const before = asked.length;
  list.see(list.lines.value.slice(140, 160), false);
  await settled();
  expect(asked).toHaveLength(before);
});

test('when it is not known what has changed, all that is seen is read again', async () => {
  const { list, traces } = opened(250);
  await settled();
  await grow(list);
  for (const one of traces) one.status = 'error';
  list.see(list.lines.value.slice(100, 160), false);
  tell();
  await settled();
  expect(list.lines.value.slice(0, 160).every(({ status }) => status === 'error')).toBe(true);
});

test('what could not be read again is, with the next change', async () => {
  const { list, traces, held } = opened(250);
  await settled();
  await grow(list);
  list.see(list.lines.value.slice(140, 160), false);
  const changed = traces[150] as (typeof traces)[number];
  changed.status = 'error';
  held.set(changed.id, Promise.reject(new TypeError('fetch failed')));
  tell(changed.id);
  await settled();
  expect(list.problem.value).toBe('The receiver does not answer. Is it still running?');
  held.clear();
  tell('another');
  await settled();
  expect(list.lines.value[150]?.status).toBe('error');
  expect(list.problem.value).toBeUndefined();
});

test('a page that was asked for before the list was cut is not joined on', async () => {
  const { list, held, traces, arrive } = opened(500);
  await settled();
  let release = (): void => {};
  held.set(
    list.read.next as string,
    new Promise((resolve) => {
      release = resolve;
    }),
  );
  list.grow();
  arrive(PAGE + 50);
  await settled();
  release();
  await settled();
  expect(idsOf(list)).toEqual(traces.slice(0, PAGE).map(({ id }) => id));
  await grow(list);
  expect(idsOf(list)).toEqual(traces.slice(0, 2 * PAGE).map(({ id }) => id));
});

test.each([
  ['one less than a page', PAGE - 1, false],
  ['a page', PAGE, true],
])('of what is read nothing goes when %s arrives at once; the top shows it', async (_, count, isBehind) => {
  const { list, traces, arrive } = opened(300);
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

test('a list that is followed at its beginning does not grow for ever', async () => {
  const { list, arrive } = opened(10);
  await settled();
  for (let time = 0; time < 60; time++) {
    arrive(50);
    await settled();
    expect(list.lines.value.length).toBeLessThanOrEqual(2_000 + PAGE);
  }
  expect(list.hasMore).toBe(true);
});

test('runs of a trace that has more than are read at once stay', async () => {
  const { list, traces } = opened(1_300, 'runs');
  for (const one of traces) one.trace_id = 'large';
  await settled();
  for (let page = 1; page < 13; page++) await grow(list);
  list.see(list.lines.value.slice(1_200, 1_230), false);
  tell('large');
  await settled();
  expect(list.lines.value).toHaveLength(1_300);
});
