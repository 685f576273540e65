import { expect, test } from 'vitest';
import { StateWriter } from '../../server/protocol/state-writer.ts';

const ROOT = { namespace: [] };
/** A message of which the JSON has 1 000 characters. */
const message = (id: number) => ({ id: `${id}`.padStart(10, '0'), content: 'x'.repeat(968) });
const list = (...ids: number[]) => ids.map(message);

/** What the log has of an event: its state, and the ids of the messages in it. */
function logged(writer: StateWriter, messages: readonly object[], method = 'values', namespace: string[] = []) {
  const data = method === 'values' ? { messages } : { name: 'model', input: { messages } };
  const { state, params } = JSON.parse(writer.bodyOf(method, { namespace }, data));
  const { messages: own } = method === 'values' ? params.data : params.data.input;
  return [state, own.map(({ id }: { id: string }) => Number(id))];
}

test('a state has the messages that the one before it has not', () => {
  expect(JSON.stringify(message(1))).toHaveLength(1_000);
  const writer = new StateWriter('r');
  expect(logged(writer, list(1, 2))).toEqual([{ id: 'r/1', total: 2_000, isWhole: true }, [1, 2]]);
  expect(logged(writer, list(1, 2, 3))).toEqual([{ id: 'r/2', total: 5_000, base: 'r/1', kept: 2 }, [3]]);
  expect(logged(writer, list(1, 2, 3))).toEqual([{ id: 'r/3', total: 8_000, base: 'r/2', kept: 3 }, []]);
});

test('what a task is given is based on the state before it, and no state is on a task', () => {
  const writer = new StateWriter('r');
  logged(writer, list(1, 2, 3));
  expect(logged(writer, list(1, 2, 3), 'tasks')).toEqual([{ total: 6_000, base: 'r/1', kept: 3 }, []]);
  expect(logged(writer, list(1), 'tasks')).toEqual([{ total: 7_000, base: 'r/1', kept: 1 }, []]);
  expect(logged(writer, list(1, 2, 3))).toEqual([{ id: 'r/2', total: 10_000, base: 'r/1', kept: 3 }, []]);
});

test('a state of another branch, or with a message that has changed, has all from there on', () => {
  const writer = new StateWriter('r');
  logged(writer, list(1, 2, 3));
  expect(logged(writer, list(1, 4))).toEqual([{ id: 'r/2', total: 5_000, base: 'r/1', kept: 1 }, [4]]);
  const changed = { ...message(1), content: 'changed' };
  expect(logged(writer, [changed, message(4)])).toMatchObject([{ base: 'r/2', kept: 0 }, [1, 4]]);
});

test('what else a state has is there each time, and what a subagent has is left as it is', () => {
  const writer = new StateWriter('r');
  logged(writer, list(1));
  const { data } = JSON.parse(writer.bodyOf('values', ROOT, { messages: list(1), title: 'Herons' })).params;
  expect(data).toEqual({ messages: [], title: 'Herons' });
  expect(logged(writer, list(1), 'values', ['tools:1'])).toEqual([undefined, [1]]);
  expect(JSON.parse(writer.bodyOf('values', ROOT, { count: 1 }))).toEqual({
    method: 'values',
    params: { namespace: [], data: { count: 1 } },
  });
});

test('a state has all of its messages again when as much has come since the last that had', () => {
  const empty = '{"method":"custom","params":{"namespace":[],"data":""}}'.length;
  for (const [chars, isWhole] of [
    [1_999, undefined],
    [2_000, true],
  ] as const) {
    const writer = new StateWriter('r');
    logged(writer, list(1, 2));
    writer.bodyOf('custom', ROOT, 'x'.repeat(chars - empty));
    const [state, messages] = logged(writer, list(1, 3));
    expect(state).toEqual({ id: 'r/2', total: 4_000, base: 'r/1', kept: 1, isWhole });
    expect(messages).toEqual(isWhole ? [1, 3] : [3]);
    // What counts is what has come since the last that had.
    expect(logged(writer, list(1, 3))[0].isWhole).toBe(isWhole ? undefined : true);
  }
});

test('however large it is, a state has all of its messages again after 2 500 events', () => {
  const large = [{ id: '1', content: 'x'.repeat(1_000_000) }];
  for (const [events, isWhole] of [
    [2_499, undefined],
    [2_500, true],
  ] as const) {
    const writer = new StateWriter('r');
    logged(writer, large);
    for (let n = 0; n < events; n++) writer.bodyOf('custom', ROOT, n);
    expect(logged(writer, large)[0].isWhole).toBe(isWhole);
  }
});

test('a run goes on where the log has ended', () => {
  const writer = new StateWriter('r');
  const messages = list(1, 2).map((each) => JSON.stringify(each));
  writer.goOn({ state: { id: 'q/7', messages }, total: 90_000, events: 10, chars: 2_999 });
  expect(logged(writer, list(1, 2, 3))).toEqual([{ id: 'r/1', total: 93_000, base: 'q/7', kept: 2 }, [3]]);
});

test('a message that JSON cannot say costs nothing but itself', () => {
  const circular: { id: string; self?: unknown } = { id: '2' };
  circular.self = circular;
  const writer = new StateWriter('r');
  logged(writer, list(1));
  const { params } = JSON.parse(writer.bodyOf('values', ROOT, { messages: [...list(1), circular, ...list(3)] }));
  const told = { unreadable: expect.stringContaining('circular') };
  expect(params.data.messages).toEqual([{ id: '2', self: told }, message(3)]);
  expect(logged(writer, [...list(1), circular, ...list(3, 4)])).toEqual([
    { id: 'r/3', total: expect.any(Number), base: 'r/2', kept: 3 },
    [4],
  ]);
});

test('what else a state has that JSON cannot say takes no message with it', () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const told = { unreadable: expect.stringContaining('circular') };
  const [values, tasks] = [
    { messages: list(1), circular },
    { name: 'model', input: { circular, messages: list(1, 2) } },
  ];
  const writer = new StateWriter('r');
  expect(JSON.parse(writer.bodyOf('values', ROOT, values)).params.data).toEqual({ circular: told, messages: list(1) });
  expect(JSON.parse(writer.bodyOf('tasks', ROOT, tasks)).params.data).toEqual({
    name: 'model',
    input: { ...told, messages: list(2) },
  });
});
