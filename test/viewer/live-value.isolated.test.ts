import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { isLocked } from '#src/viewer/data/api.ts';
import { listenForChanges, live, onChanges } from '#src/viewer/data/changes.ts';
import { changesOfTrace, type LiveOptions, LiveValue, STATISTICS } from '#src/viewer/data/live-value.ts';
import { FakeStream, fakeBrowser } from './fake-browser.ts';

let answers: ReturnType<typeof fakeBrowser>;
beforeEach(() => {
  vi.useFakeTimers();
  answers = fakeBrowser();
  isLocked.value = false;
});

function recordChanges(): (string[] | 'unknown')[] {
  const changes: (string[] | 'unknown')[] = [];
  onTestFinished(onChanges((traceIds) => changes.push(traceIds === undefined ? 'unknown' : [...traceIds])));
  return changes;
}

/** A live value whose reads end when the test says so. */
function heldValue(options?: LiveOptions) {
  const reads: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const read = (): Promise<string> => new Promise((resolve, reject) => reads.push({ resolve, reject }));
  const value = new LiveValue(read, { isStale: changesOfTrace('a'), ...options });
  onTestFinished(() => value.close());
  return { value, reads };
}

test('the page waits one second for the stream, and reads everything again if it opens later', async () => {
  const opened = vi.fn();
  void listenForChanges().then(opened);
  await vi.advanceTimersByTimeAsync(999);
  expect(opened).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(opened).toHaveBeenCalled();
  const changes = recordChanges();
  FakeStream.last.emit('open');
  expect(changes).toEqual(['unknown']);
});

test('after the browser has reconnected a lost stream, the page reads everything again', () => {
  void listenForChanges();
  FakeStream.last.emit('open');
  const changes = recordChanges();
  FakeStream.last.emit('error');
  expect([live.value, changes]).toEqual(['lost', []]);
  FakeStream.last.emit('open');
  expect([live.value, changes]).toEqual(['on', ['unknown']]);
});

test('a refused stream is opened again after three seconds, unless a key is required', async () => {
  answers.status = 503;
  void listenForChanges();
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
  expect([isLocked.value, FakeStream.last]).toEqual([true, second]);
});

test('changes during a read cause one more read, after a pause of three times its duration', async () => {
  void listenForChanges();
  const { value, reads } = heldValue();
  await vi.advanceTimersByTimeAsync(400);
  FakeStream.last.emit('change', { trace_ids: ['a'] });
  FakeStream.last.emit('change', { trace_ids: ['a'] });
  FakeStream.last.emit('change', { trace_ids: ['b'] });
  reads[0]?.resolve('first');
  await vi.advanceTimersByTimeAsync(1_199);
  expect([value.value.value, reads.length]).toEqual(['first', 1]);
  await vi.advanceTimersByTimeAsync(1);
  expect(reads).toHaveLength(2);
  reads[1]?.resolve('second');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([value.value.value, reads.length]).toEqual(['second', 2]);
});

test('statistics are read once more after the receiver may have repeated an answer from before a change', async () => {
  void listenForChanges();
  const { reads } = heldValue(STATISTICS);
  reads[0]?.resolve('old');
  await vi.advanceTimersByTimeAsync(60_000);
  FakeStream.last.emit('change', { trace_ids: ['b'] });
  reads[1]?.resolve('repeated');
  await vi.advanceTimersByTimeAsync(1_999);
  expect(reads).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reads).toHaveLength(3);
});

test('a closed value reads nothing and ignores the result of its last read', async () => {
  void listenForChanges();
  const { value, reads } = heldValue();
  value.close();
  reads[0]?.resolve('late');
  FakeStream.last.emit('change', {});
  value.reload();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([value.value.value, reads.length]).toEqual([undefined, 1]);
});
