import fc from 'fast-check';
import { expect, it } from 'vitest';
import { wrapClaudeAgentSDK } from '#src/claude-agent.ts';
import { fieldsOf } from '#src/payload/fields.ts';
import { recordRuns } from '#src/testing.ts';
import { forAllAsync } from '../support/campaign.ts';

type Message = Readonly<Record<string, unknown>>;
type Messages = Generator<Message>;
type Block = 'text' | 'tool' | readonly Turn[];
type Turn = readonly Block[];

/** What a query must record: the parent and the input tokens of each turn, and the parent of each tool. */
class Expected {
  readonly parents = new Map<string, string | null>();
  readonly tokens = new Map<string, number>();
}

/** Writes the messages of a query. `pick` chooses which of the concurrent tools continues. */
class Writer extends Expected {
  readonly #pick: (count: number) => number;

  constructor(picks: readonly number[]) {
    super();
    let at = 0;
    this.#pick = (count) => (picks[at++ % picks.length] ?? 0) % count;
  }

  *turns(turns: readonly Turn[], parent: string | null): Messages {
    for (const turn of turns) {
      const live: Messages[] = [];
      live.push(this.#blocks(turn, parent, live));
      while (live.length > 0) {
        const at = this.#pick(live.length);
        const { done, value } = (live[at] as Messages).next();
        if (done === true) live.splice(at, 1);
        else yield value;
      }
    }
  }

  /** Claude Code sends a message for each block. It executes a tool when its block is complete. */
  *#blocks(turn: Turn, parent: string | null, live: Messages[]): Messages {
    const id = `msg_${this.tokens.size}`;
    const input_tokens = this.tokens.size + 1;
    this.tokens.set(id, input_tokens);
    this.parents.set(id, parent);
    for (const block of turn) {
      const toolId = `toolu_${this.parents.size}`;
      const text = { type: 'text', text: 'Hello.' };
      const content = [block === 'text' ? text : { type: 'tool_use', id: toolId, name: 'Tool', input: {} }];
      if (block !== 'text') {
        this.parents.set(toolId, parent);
        live.push(this.#tool(toolId, block === 'tool' ? [] : block, parent));
      }
      const usage = { input_tokens, output_tokens: 1 };
      yield this.#message({ id, role: 'assistant', model: 'claude', content, stop_reason: null, usage }, parent);
    }
  }

  *#tool(tool_use_id: string, turns: readonly Turn[], parent: string | null): Messages {
    yield* this.turns(turns, tool_use_id);
    yield this.#message({ role: 'user', content: [{ type: 'tool_result', tool_use_id, content: 'Done.' }] }, parent);
  }

  #message(message: Message, parent_tool_use_id: string | null): Message {
    return { type: message.role, message, parent_tool_use_id };
  }
}

const { turns } = fc.letrec<{ turns: Turn[]; turn: Turn; block: Block }>((tie) => ({
  turns: fc.array(tie('turn'), { minLength: 1, maxLength: 3 }),
  turn: fc.array(tie('block'), { minLength: 1, maxLength: 3 }),
  block: fc.oneof({ maxDepth: 2 }, fc.constantFrom<Block>('text', 'tool'), tie('turns')),
}));
const picks = fc.array(fc.nat(), { minLength: 1, maxLength: 40 });
const RESULT = { type: 'result', subtype: 'success', result: 'Done.', is_error: false };

function queryOf(messages: Iterable<Message>): (params?: unknown) => AsyncGenerator<Message> {
  const sdk = { query: () => Object.assign(from(messages), { interrupt: () => {} }), tool: () => {} };
  return wrapClaudeAgentSDK(sdk).query;
}

async function* from(messages: Iterable<Message>): AsyncGenerator<Message> {
  yield* messages;
}

/** Maps the id of each message and tool to that of the tool above it, or to null below the query. */
function parentsOf({ runs }: ReturnType<typeof recordRuns>): Map<string, string | null> {
  const idOf = (id: string | undefined): string => {
    const metadata = fieldsOf(runs.find((run) => run.id === id)?.extra?.metadata);
    return (metadata.response_id ?? metadata.tool_call_id ?? null) as string;
  };
  const calls = runs.filter(({ parent_run_id }) => parent_run_id !== undefined);
  return new Map(calls.map(({ id, parent_run_id }) => [idOf(id), idOf(parent_run_id)]));
}

it('records each message id once, below the tool of its subagent, in any order of concurrent tools', async () => {
  await forAllAsync(100, [turns, picks], async (given, order) => {
    using recorder = recordRuns();
    const writer = new Writer(order);
    const written = [...writer.turns(given, null), RESULT];
    const read: Message[] = [];
    for await (const message of queryOf(written)()) read.push(message);
    expect(read).toEqual(written);
    const { runs } = recorder;
    expect(runs).toHaveLength(1 + writer.parents.size);
    expect(parentsOf(recorder)).toEqual(writer.parents);
    const tokens = runs.flatMap(({ run_type, extra }) => {
      const { response_id, usage_metadata } = fieldsOf(extra?.metadata);
      return run_type === 'llm' ? [[response_id, fieldsOf(usage_metadata).input_tokens]] : [];
    });
    expect(new Map(tokens as [string, number][])).toEqual(writer.tokens);
    expect(runs.filter(({ end_time, error }) => end_time === undefined || error !== undefined)).toEqual([]);
  });
});

it.each([
  ['the reader leaves', 'cancelled', undefined],
  ['the query fails', undefined, 'Error: It broke.'],
  ['the query is interrupted', 'cancelled', undefined],
  ['the query ends', 'interrupted', 'Interrupted: the messages ended without a result'],
])('ends every run, wherever %s', async (how, reason, error) => {
  await forAllAsync(100, [turns, picks, fc.nat()], async (given, order, length) => {
    using recorder = recordRuns();
    const written = [...new Writer(order).turns(given, null)];
    const cut = written.slice(0, 1 + (length % written.length));
    const thrown = new Error('It broke.');
    function* failing(): Messages {
      yield* cut;
      if (how === 'the query ends') return;
      if (how !== 'the query is interrupted') throw thrown;
      yield { type: 'result', subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' };
    }
    let seen = 0;
    try {
      for await (const _ of queryOf(failing())()) if (++seen === cut.length && how === 'the reader leaves') break;
    } catch (caught) {
      expect([caught, how]).toEqual([thrown, 'the query fails']);
    }
    const { runs } = recorder;
    const [query] = runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    expect(query?.extra?.runspan_end_reason).toBe(reason);
    expect(query?.error?.split('\n', 1)[0]).toBe(error);
    expect(runs.filter(({ end_time }) => end_time === undefined)).toEqual([]);
  });
});

it('keeps the object of the query and its methods, reads no message ahead, and is cancelled by `interrupt`', async () => {
  using recorder = recordRuns();
  let asked = 0;
  const messages = { type: 'system', subtype: 'init' };
  const query = Object.assign(
    (async function* () {
      while (asked < 2) {
        asked++;
        yield messages;
      }
    })(),
    { interrupt: () => 'interrupted' },
  );
  const { query: traced } = wrapClaudeAgentSDK({ query: () => query, tool: () => {} });
  expect(traced()).toBe(query);
  expect(query.interrupt()).toBe('interrupted');
  expect(asked).toBe(0);
  expect((await query.next()).value).toBe(messages);
  expect(asked).toBe(1);
  for await (const _ of query);
  expect(recorder.runs).toMatchObject([{ name: 'claude-agent', extra: { runspan_end_reason: 'cancelled' } }]);
});

it('records a compaction, the cost and structured output of a result, and a request that failed', async () => {
  using recorder = recordRuns();
  const compact_metadata = { trigger: 'auto', pre_tokens: 9_000 };
  const modelUsage = {
    'claude-a': { inputTokens: 2, outputTokens: 3, cacheReadInputTokens: 5, cacheCreationInputTokens: 7 },
    'claude-b': { inputTokens: 1, outputTokens: 1 },
  };
  const content = [{ type: 'text', text: 'API Error: 400' }];
  const message = { id: 'm', model: '<synthetic>', content, usage: { input_tokens: 0, output_tokens: 0 } };
  const query = queryOf([
    { type: 'system', subtype: 'compact_boundary', compact_metadata },
    { type: 'assistant', message: { ...message, id: 'own' } },
    { type: 'assistant', message, error: 'invalid_request' },
    { ...RESULT, structured_output: { drink: 'tea' }, modelUsage, total_cost_usd: 0.25 },
  ]);
  for await (const _ of query());
  expect(recorder.runs).toMatchObject([
    {
      events: [{ name: 'compaction', kwargs: compact_metadata }],
      outputs: { result: 'Done.', structured_output: { drink: 'tea' } },
      extra: { metadata: { usage_metadata: { input_tokens: 15, output_tokens: 4, total_cost: 0.25 } } },
    },
    { name: 'anthropic.messages', error: 'invalid_request: API Error: 400' },
  ]);
});

it('ends a session without prompts as it is', async () => {
  using recorder = recordRuns();
  for await (const _ of queryOf([{ type: 'system', subtype: 'init' }])({ prompt: from([]) }));
  expect(recorder.runs.map((run) => run.end_time && (run.extra?.runspan_end_reason ?? 'done'))).toEqual(['done']);
});

it('hides messages, prompts and results', async () => {
  using recorder = recordRuns({ hideInputs: true, hideOutputs: true });
  const block = { type: 'tool_use', id: 't', name: 'Tool', input: { text: 'secret' } };
  const message = { id: 'm', model: 'claude', content: [{ type: 'text', text: 'secret' }, block], usage: {} };
  const result = { type: 'tool_result', tool_use_id: 't', is_error: true, content: 'secret' };
  const query = queryOf([
    { type: 'assistant', message },
    { type: 'user', message: { role: 'user', content: [result] } },
    { ...RESULT, result: 'secret' },
  ]);
  for await (const _ of query({ prompt: 'secret' }));
  expect(recorder.runs).toHaveLength(3);
  expect(JSON.stringify(recorder.runs)).not.toContain('secret');
});
