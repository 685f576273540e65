// Which recorded call answers a request, for generated conversations in the formats of several services.
import { describe, expect, test } from 'vitest';
import type { Fields } from '#src/payload/fields.ts';
import type { RecordedCall } from '#src/replay/fixture.ts';
import { findCall, type Match, mismatchText } from '#src/replay/match.ts';
import { randomFrom } from '../faults/random.ts';

const SEED = 20_261_129;
const CASES = 50;

interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: object;
  readonly result: string;
}

/** An agent's steps. In each step, the model answers with a text and calls of tools. */
interface Conversation {
  readonly question: string;
  readonly steps: readonly { readonly text: string; readonly calls: readonly ToolCall[] }[];
}

type Step = Conversation['steps'][number];

/** How a service's requests describe the tools, a step of the model, and the results of its tools. */
interface Shape {
  readonly call: string;
  tool(name: string): object;
  answer(step: Step): object[];
  results(step: Step): object[];
}

const schema = { type: 'object', properties: { query: { type: 'string' } } };

const SHAPES: readonly Shape[] = [
  {
    call: 'openai.chat.completions',
    tool: (name) => ({ type: 'function', function: { name, parameters: schema } }),
    answer: ({ text, calls }) => {
      const asked = calls.map(({ id, name, input }) => ({
        ...{ id, type: 'function' },
        function: { name, arguments: JSON.stringify(input) },
      }));
      return [{ role: 'assistant', content: text === '' ? null : text, tool_calls: asked }];
    },
    results: ({ calls }) => calls.map(({ id, result }) => ({ role: 'tool', tool_call_id: id, content: result })),
  },
  {
    call: 'anthropic.messages',
    tool: (name) => ({ name, input_schema: schema }),
    answer: ({ text, calls }) => {
      const asked = calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input }));
      return [{ role: 'assistant', content: [...(text === '' ? [] : [{ type: 'text', text }]), ...asked] }];
    },
    results: ({ calls }) => {
      const content = calls.map(({ id, result }, at) => {
        const answer = at % 2 === 0 ? result : [{ type: 'text', text: result }];
        return { type: 'tool_result', tool_use_id: id, content: answer };
      });
      return [{ role: 'user', content }];
    },
  },
  {
    call: 'openai.responses',
    tool: (name) => ({ type: 'function', name, parameters: schema, strict: true }),
    answer: ({ text, calls }) => [
      { type: 'reasoning', id: `rs_${calls.length}`, summary: [], encrypted_content: 'b3BhcXVl' },
      ...(text === '' ? [] : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }]),
      ...calls.map(({ id, name, input }) => ({
        ...{ type: 'function_call', call_id: id },
        ...{ name, arguments: JSON.stringify(input) },
      })),
    ],
    results: ({ calls }) =>
      calls.map(({ id, result }) => ({ type: 'function_call_output', call_id: id, output: result })),
  },
];

class Generator {
  readonly #random: () => number;
  #count = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  list<Item>(min: number, max: number, item: () => Item): Item[] {
    return Array.from({ length: min + this.below(max - min + 1) }, item);
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const left = [...items];
    return items.map(() => left.splice(this.below(left.length), 1)[0] as Item);
  }

  /** Returns a text that no other call returns. */
  text(prefix: string): string {
    return `${prefix} ${this.pick(['tea', 'é😀', '"\\', ' two\nlines'])} ${this.#count++}`;
  }

  conversation(): Conversation {
    const call = () => ({
      id: this.text('id'),
      name: this.pick(['look_up', 'add']),
      input: this.pick<object>([{}, { query: this.text('query') }, { limit: this.below(9), nested: [null, true] }]),
      result: this.text('result'),
    });
    const step = () => ({ text: this.pick(['', this.text('text')]), calls: this.list(1, 3, call) });
    return { question: this.text('question'), steps: this.list(1, 4, step) };
  }

  /** Returns the calls of a conversation. The last one is made after the last results. */
  calls({ question, steps }: Conversation, { call, tool, answer, results }: Shape): RecordedCall[] {
    const fixed = { model: 'small', temperature: 0, tools: ['look_up', 'add'].map(tool) };
    return Array.from({ length: steps.length + 1 }, (_, length) => {
      const earlier = steps.slice(0, length).flatMap((step) => [...answer(step), ...results(step)]);
      const request = { ...fixed, messages: [{ role: 'user', content: question }, ...earlier] };
      return { below: 'agent', call, request, status: 200, response: {} };
    });
  }

  /** Returns the calls of several conversations, in an order in which parallel agents make them. */
  fixture(shape: Shape): RecordedCall[] {
    const waiting = this.list(1, 3, () => this.calls(this.conversation(), shape));
    const calls: RecordedCall[] = [];
    for (let open = waiting; open.length > 0; open = open.filter(({ length }) => length > 0)) {
      calls.push(this.pick(open).shift() as RecordedCall);
    }
    return calls;
  }
}

type Path = readonly (string | number)[];

function leavesOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  if (Array.isArray(value)) return value.flatMap((item, at) => leavesOf(item, [...path, at]));
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, [...path, key]));
}

const valueAt = (value: unknown, path: Path): unknown => path.reduce((at, key) => (at as Fields)[key as string], value);

/** Returns a copy of a request in which one value is another one. The value `undefined` removes it. */
function changed(request: Fields, path: Path, value: unknown): Fields {
  const copy = structuredClone(request);
  const owner = valueAt(copy, path.slice(0, -1)) as Fields;
  const key = path.at(-1) as string;
  if (value === undefined && !Array.isArray(owner)) delete owner[key];
  else owner[key] = value;
  return copy;
}

/** The name of a path in a line of a difference, for example `messages[2].content`. */
const named = (path: Path): string =>
  path.map((key, at) => (typeof key === 'number' ? `[${key}]` : at === 0 ? key : `.${key}`)).join('');

const isResult = (value: unknown): boolean => String(value).startsWith('result ');

function reordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reordered);
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reordered(item)]),
  );
}

const live = ({ call }: RecordedCall, request: unknown) => ({ call, request: request as Fields });

const input = (...texts: string[]): RecordedCall => ({
  ...{ below: '', call: 'openai.embeddings', status: 200, response: {} },
  request: { model: 'small', input: texts },
});

test('a request without messages is answered by the one with the most equal inputs in the mode `failed`', () => {
  const calls = [input('tea', 'cup'), input('milk', 'jug')];
  const match = findCall(calls, new Set(), input('milk', 'mug'), 'failed');
  expect(match).toEqual({ index: 1, notes: ['input[1]: recorded "jug", got "mug"'] });
});

test('a difference at the end of a long text is shown', () => {
  const long = 'x'.repeat(3_000);
  const text = mismatchText([input(`${long}cup`)], new Set(), input(`${long}mug`));
  const shown = ['cup', 'mug'].map((end) => JSON.stringify('x'.repeat(50) + end));
  expect(text).toContain(`\n  input[0] from character 2950: recorded ${shown[0]}, got ${shown[1]}`);
});

describe.each(SHAPES)('requests of $call', (shape) => {
  const cases = () => Array.from({ length: CASES }, (_, at) => new Generator(SEED + at));

  test('are each answered once by the equal call, in any order', () => {
    for (const g of cases()) {
      const calls = g.fixture(shape);
      const used = new Set<number>();
      for (const [index, call] of g.shuffled([...calls.entries()])) {
        const mode = g.pick(['strict', 'failed'] as const);
        const match = findCall(calls, used, live(call, reordered(call.request)), mode);
        expect(match).toEqual({ index, notes: [] });
        used.add(index);
      }
      const [again] = calls;
      expect(findCall(calls, used, live(again as RecordedCall, again?.request), 'failed')).toBeUndefined();
    }
  });

  test('that are equal are answered in the recorded order', () => {
    for (const g of cases()) {
      const [call] = g.calls(g.conversation(), shape) as [RecordedCall];
      const calls = Array.from({ length: 3 }, () => structuredClone(call));
      const used = new Set<number>();
      const answered = calls.map(() => {
        const { index } = findCall(calls, used, live(call, call.request), 'strict') as Match;
        used.add(index);
        return index;
      });
      expect(answered).toEqual([0, 1, 2]);
    }
  });

  test('with another value anywhere match no call in the mode `strict`, and the value is named', () => {
    for (const g of cases()) {
      const calls = g.fixture(shape);
      const call = g.pick(calls);
      const path = g.pick(leavesOf(call.request));
      const request = changed(call.request, path, g.pick([g.text('other'), 99, null, undefined]));
      if (valueAt(call.request, path) === valueAt(request, path)) continue;
      expect(findCall(calls, new Set(), live(call, request), 'strict')).toBeUndefined();
      expect(mismatchText([call], new Set(), live(call, request))).toContain(`\n  ${named(path)}: recorded `);
    }
  });

  test('with another message or field match no call in the mode `strict`', () => {
    for (const g of cases()) {
      const call = g.pick(g.calls(g.conversation(), shape));
      const messages = call.request.messages as object[];
      const [first, ...others] = messages;
      const changes = [
        { messages: messages.slice(0, -1) },
        { messages: [...messages, { role: 'user', content: 'And now?' }] },
        { messages: [{ ...first, name: 'user' }, ...others] },
        { top_p: 1 },
      ];
      for (const change of changes)
        expect(findCall([call], new Set(), live(call, { ...call.request, ...change }), 'strict')).toBeUndefined();
    }
  });

  test('with another result of a tool are answered by their call in the mode `failed`, with a note', () => {
    for (const g of cases()) {
      const calls = g.fixture(shape);
      const withResults = [...calls.entries()].filter(([, { request }]) => (request.messages as object[]).length > 1);
      const [index, call] = g.pick(withResults);
      const results = leavesOf(call.request).filter((path) => isResult(valueAt(call.request, path)));
      const paths = results.filter((_, at) => at === 0 || g.below(2) === 0);
      const other = g.text('result');
      const request = paths.reduce((done, path) => changed(done, path, other), call.request);
      const notes = paths.map((path) => {
        const recorded = JSON.stringify(valueAt(call.request, path));
        return `${named(path)}: recorded ${recorded}, got ${JSON.stringify(other)}`;
      });
      expect(findCall(calls, new Set(), live(call, request), 'failed')).toEqual({ index, notes });
    }
  });

  test('with another model, tool, number of answers or form of the answer match no call in the mode `failed`', () => {
    for (const g of cases()) {
      const [first, ...others] = g.calls(g.conversation(), shape) as [RecordedCall, ...RecordedCall[]];
      const requests = [
        { ...first.request, model: 'large' },
        { ...first.request, stream: true },
        { ...first.request, tools: [shape.tool('subtract')] },
        ...others.map(({ request }) => request),
      ];
      for (const request of requests)
        expect(findCall([first], new Set(), live(first, request), 'failed')).toBeUndefined();
    }
  });
});
