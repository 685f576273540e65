// Generated agents of eight frameworks that run in one process at the same time, with steps that fail, are cancelled, time
// out, are approved and resumed, or are abandoned.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { depthFirst, forestOf, type Tree } from '#src/base/forest.ts';
import type { RunRecord } from '#src/run/record.ts';
import { randomFrom } from '../faults/random.ts';
import { cases, seed } from '../support/campaign.ts';
import { laterNode } from './later-node.ts';

const FRAMEWORKS = ['agents', 'ai', 'mastra', 'langchain', 'langgraph', 'claude', 'mcp', 'langsmith'] as const;
const ENDINGS = ['ok', 'fail', 'abort', 'timeout', 'leave', 'pause', 'approve'] as const;
/**
 * The program, a traced function, and functions for which tracing is off. No program has the last one yet: after it, a step
 * of LangChain below a traced function may have two runs.
 */
const CALLERS = ['none', 'traced', 'disabled', 'unsampled', 'exporter', 'langsmith'] as const;

interface Program {
  readonly framework: (typeof FRAMEWORKS)[number];
  readonly ending: (typeof ENDINGS)[number];
  /** The answers of the model, as `today/agent-steps.mjs` describes them. */
  readonly steps: readonly string[];
  readonly streamed: boolean;
  readonly caller: (typeof CALLERS)[number];
}

interface Batch {
  readonly runs: readonly RunRecord[];
  /** What the caller of each agent saw, and the tools and requests that the agent has started. */
  readonly callers: readonly { readonly outcome: string; readonly started: readonly string[] }[];
  readonly ends: Readonly<Record<string, number>>;
  readonly kept: number;
}

/** Frameworks whose agents cannot end in this way. */
const NEVER: Partial<Record<Program['framework'], readonly Program['ending'][]>> = {
  langchain: ['pause', 'approve'],
  // If the messages just end, the runs are cancelled, also after a timeout.
  claude: ['timeout', 'pause', 'approve'],
  mcp: ['leave', 'pause', 'approve'],
  langsmith: ['abort', 'timeout', 'leave', 'pause', 'approve'],
};

function programOf(random: () => number): Program {
  const pick = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)] as Value;
  const framework = pick(FRAMEWORKS);
  const ending = pick(ENDINGS.filter((one) => !NEVER[framework]?.includes(one)));
  const streamed = ending === 'leave' || random() < 0.5;
  // A `RunTree` has only the parent that it is given, and each call of MCP has a run of its own.
  const on = framework === 'mcp' ? 'traced' : pick(['none', 'traced'] as const);
  const caller = framework === 'langsmith' ? 'none' : random() < 0.7 ? on : pick(CALLERS.slice(2));
  const waits = framework === 'mcp' ? ['stuck'] : streamed ? ['hang', 'stuck', 'stall'] : ['hang', 'stuck'];
  const last = { ok: 'ok', fail: 'fail', abort: pick(waits), timeout: pick(waits), leave: 'stall', pause: 'pay' };
  const calls = [[], ['tool'], ['bad'], ['tool+bad'], ['tool', 'tool+tool']];
  const steps = [...pick(calls), ...(ending === 'approve' ? ['pay', 'ok'] : [last[ending]])];
  if (framework !== 'claude') return { framework, ending, steps, streamed, caller };
  const recordings = { ok: [pick(['tools', 'subagent'])], fail: ['max-turns'] };
  const recorded = recordings[ending as 'ok'] ?? ['subagent', 'hang'];
  return { framework, ending, steps: recorded, streamed: true, caller };
}

/** OpenAI Agents ends a stream that was aborted in a tool as if the agent had succeeded, and its spans tell nothing else. */
const endsUnseen = ({ framework, ending, steps, streamed }: Program): boolean =>
  framework === 'agents' && streamed && /abort|timeout/.test(ending) && steps.includes('stuck');

let child: ChildProcess;

beforeAll(async () => {
  const path = fileURLToPath(new URL('./today/agent-steps.mjs', import.meta.url));
  const execArgv = ['--import', import.meta.resolve('runspan/register'), '--expose-gc'];
  const env = { PATH: process.env.PATH, RUNSPAN_TRACING: 'true', NODE_NO_WARNINGS: '1' };
  child = fork(path, { execPath: laterNode(), execArgv, env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  await once(child, 'message');
});
afterAll(() => child.kill());

async function together(programs: readonly Program[], turns = 1, keptMax = 0): Promise<Batch> {
  const marked = programs.map((program, at) => ({ ...program, mark: `a${at}` }));
  child.send({ programs: marked, seed: turns, keptMax });
  const [batch] = await once(child, 'message');
  return batch;
}

const statusOf = ({ end_time, error, extra }: RunRecord): string =>
  end_time === undefined ? 'pending' : String(extra?.runspan_end_reason ?? (error ? 'error' : 'success'));

/** A tree without ids and times, with sorted siblings. */
const textOf = ({ run, children }: Tree<RunRecord>): string =>
  `${run.name.replace(/#\w+/, '')} ${run.run_type} ${statusOf(run)}(${children.map(textOf).sort().join(', ')})`;

const textsOf = (forest: readonly Tree<RunRecord>[] = []): string => forest.map(textOf).sort().join('\n');

/** The trees by the marks of the agents in their payloads. */
function treesByMark(runs: readonly RunRecord[]): Map<string, Tree<RunRecord>[]> {
  const byMark = new Map<string, Tree<RunRecord>[]>();
  for (const tree of forestOf(runs)) {
    const payloads = [...depthFirst([tree])].map(([{ run }]) => [run.name, run.inputs, run.outputs]);
    const mark = [...new Set(JSON.stringify(payloads).match(/#a\d+\b/g))].join();
    byMark.set(mark, [...(byMark.get(mark) ?? []), tree]);
  }
  return byMark;
}

const alone = new Map<string, Promise<Batch>>();

function lone(program: Program): Promise<Batch> {
  const key = JSON.stringify(program);
  const batch = alone.get(key) ?? together([program]);
  alone.set(key, batch);
  return batch;
}

/** Returns what is wrong with the runs of a program that runs alone. */
function loneProblem({ framework, caller }: Program, { callers, runs }: Batch): string | undefined {
  const [{ outcome, started } = { outcome: '', started: [] }] = callers;
  if (caller !== 'none' && caller !== 'traced') return runs.length > 0 ? 'it is off, but has runs' : undefined;
  // Claude Code makes its requests in another process.
  const recorded = runs.flatMap(({ name, run_type, extra }) => {
    if (run_type === 'llm') return framework === 'claude' || extra?.metadata?.same_call ? [] : ['llm'];
    return run_type === 'tool' && !/^(?:Bash|Agent)$/.test(name) ? [name.replace(/^mcp.*/, 'tool')] : [];
  });
  const steps = [recorded, started].map((names) => [...names].sort().join());
  if (steps[0] !== steps[1]) return `the steps are ${steps[1]}, the runs ${steps[0]}`;
  const tools = new Set(runs.flatMap(({ id, run_type }) => (run_type === 'tool' ? [id] : [])));
  if (runs.some(({ name, parent_run_id: above = '' }) => name === 'find' && !tools.has(above))) return 'misplaced work';
  const forest = forestOf(runs).flatMap((tree) => (caller === 'traced' ? tree.children : tree));
  const statuses = forest.map(({ run }) => statusOf(run));
  if (outcome === 'left') return undefined;
  const isSuccess = /success|paused/.test(outcome);
  const isSeen = isSuccess ? (statuses.at(-1) ?? 'success') === 'success' : statuses.includes(outcome);
  return isSeen ? undefined : `the caller saw ${outcome}, the runs are ${statuses}`;
}

/** Returns what is wrong with the runs of the programs, if they run together. */
async function problemOf(programs: readonly Program[], turns: number): Promise<string | undefined> {
  for (const program of programs) {
    const problem = loneProblem(program, await lone(program));
    if (problem !== undefined && !endsUnseen(program)) return `alone: ${problem}`;
  }
  const { runs, callers, ends } = await together(programs, turns);
  const open = runs.find(({ id }) => ends[id] !== 1);
  if (open !== undefined) return `${open.name} has ${ends[open.id] ?? 'no'} ends`;
  const byMark = treesByMark(runs);
  for (const [at, program] of programs.entries()) {
    const known = await lone(program);
    const [actual, expected] = [textsOf(byMark.get(`#a${at}`)), textsOf(forestOf(known.runs))];
    byMark.delete(`#a${at}`);
    const [seen, seenAlone] = [callers[at]?.outcome, known.callers[0]?.outcome];
    if (seen !== seenAlone) return `its caller saw ${seen}, alone ${seenAlone}`;
    if (actual !== expected) return `together:\n${actual}\nalone:\n${expected}`;
  }
  const [other] = byMark;
  return other && `runs of ${other[0] || 'no agent'}:\n${textsOf(other[1])}`;
}

/** Returns some of the programs that fail together, of which none can be left out. */
async function smallest(programs: readonly Program[], turns: number): Promise<readonly Program[]> {
  let failing = programs;
  for (let size = Math.ceil(programs.length / 2); ; size = Math.ceil(size / 2)) {
    for (let at = 0; at < failing.length; ) {
      const fewer = failing.toSpliced(at, size);
      if (fewer.length > 0 && (await problemOf(fewer, turns)) !== undefined) failing = fewer;
      else at += size;
    }
    if (size === 1) return failing;
  }
}

const programsOf = (random: () => number): Program[] =>
  Array.from({ length: Math.min(200, cases(400)) }, () => programOf(random));
const rounds = Math.min(10, cases(30));

test.each(Array.from({ length: rounds }, (_, round) => seed() + round))(
  'agents at the same time have the runs that each has alone, with seed %i',
  async (turns) => {
    const programs = programsOf(randomFrom(turns));
    const problem = await problemOf(programs, turns);
    if (problem === undefined) return;
    const failing = await smallest(programs, turns);
    const again = await problemOf(failing, turns);
    expect.fail(`${again ?? problem}\nCAMPAIGN_SEED=${turns}\n${failing.map((one) => JSON.stringify(one)).join('\n')}`);
  },
  600_000,
);

test('no run stays in memory after the last agent', async () => {
  // A framework may keep the context of its last agent.
  const keptMax = 2 * FRAMEWORKS.length - 1;
  const { kept } = await together(programsOf(randomFrom(seed())), seed(), keptMax);
  expect(kept).toBeLessThanOrEqual(keptMax);
});
