import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { isLocked } from '../../src/viewer/data/api.ts';
import { listen, live, onChanges, toggleLive } from '../../src/viewer/data/changes.ts';
import { FakeStream, fakeBrowser } from './fake-browser.ts';

/** What has been told: the traces, or `anything`. */
function heard(): (string[] | 'anything')[] {
  const told: (string[] | 'anything')[] = [];
  onTestFinished(onChanges((traceIds) => told.push(traceIds === undefined ? 'anything' : [...traceIds])));
  return told;
}

beforeEach(() => {
  vi.useFakeTimers();
  fakeBrowser();
  isLocked.value = false;
  onTestFinished(() => void vi.useRealTimers());
});

test('a change tells its traces, and one without any tells that it may be all of them', async () => {
  const opening = listen();
  FakeStream.last.emit('open');
  await opening;
  const told = heard();
  FakeStream.last.emit('change', { seq: 1, trace_ids: ['a', 'b'] });
  FakeStream.last.emit('change', { seq: 2 });
  expect(told).toEqual([['a', 'b'], 'anything']);
});

test('what is shown waits for the stream for a second, and then is read again when it opens', async () => {
  const opening = listen();
  const waited = vi.fn();
  void opening.then(waited);
  await vi.advanceTimersByTimeAsync(999);
  expect(waited).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(waited).toHaveBeenCalled();
  const told = heard();
  FakeStream.last.emit('open');
  FakeStream.last.emit('open');
  expect(told).toEqual(['anything']);
});

test('a page in the background holds no connection, and reads again what it has missed', async () => {
  const { document } = fakeBrowser();
  void listen();
  FakeStream.last.emit('open');
  const before = FakeStream.last;
  const told = heard();
  document.hidden = true;
  await listen();
  expect(before.readyState).toBe(FakeStream.CLOSED);
  expect(FakeStream.last).toBe(before);
  document.hidden = false;
  void listen();
  expect(FakeStream.last).not.toBe(before);
  FakeStream.last.emit('open');
  expect(told).toEqual(['anything']);
});

test('a refused stream is asked for again after three seconds, unless the key is asked for', async () => {
  const { answers } = fakeBrowser();
  answers.status = 503;
  void listen();
  const first = FakeStream.last;
  first.refuse();
  expect(live.value).toBe('lost');
  await vi.advanceTimersByTimeAsync(2_999);
  expect(FakeStream.last).toBe(first);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeStream.last).not.toBe(first);
  const second = FakeStream.last;
  answers.status = 401;
  second.refuse();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(isLocked.value).toBe(true);
  expect(FakeStream.last).toBe(second);
});

test('a paused page stays so, in sight or not', async () => {
  void listen();
  const first = FakeStream.last;
  toggleLive();
  await listen();
  expect([live.value, FakeStream.last]).toEqual(['off', first]);
  toggleLive();
  expect(FakeStream.last).not.toBe(first);
});
