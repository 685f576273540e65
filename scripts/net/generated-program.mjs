import { Readable } from 'node:stream';
import { generatedValue } from './generated-values.mjs';
import { seeded } from './seeded.mjs';

const SYNC_KINDS = ['call', 'call', 'call', 'generator', 'manual', 'manual', 'processed', 'remote'];
const ASYNC_KINDS = ['async', 'async', 'asyncGenerator', 'webStream', 'nodeStream', 'thenable', 'concurrent', 'slow'];
const RUN_TYPES = [undefined, 'chain', 'llm', 'tool', 'retriever', 'of my own'];

/**
 * A tree of traced calls. Each node has a name of its own, by which its run is known in every build.
 *
 * @param {number} seed
 * @param {{ isSync: boolean, calls: number, values?: boolean, mark?: string }} shape
 */
export function generatedProgram(seed, { isSync, calls, mark = '' }) {
  const random = seeded(seed);
  const kinds = isSync ? SYNC_KINDS : [...SYNC_KINDS, ...ASYNC_KINDS, ...ASYNC_KINDS];
  let count = 0;
  const node = (depth, mayWait) => {
    const kind = random.pick(mayWait ? kinds : SYNC_KINDS);
    const made = { name: `${kind} ${count++}${random.chance(0.2) ? mark : ''}`, kind, depth, children: [] };
    made.value = (at) =>
      generatedValue(seed, (count * 7 + made.depth) * 10 + at + Number(made.name.match(/\d+/)[0]) * 100);
    Object.assign(made, {
      fails: random.chance(0.12),
      leaves: random.chance(0.2),
      ends: random.chance(0.9),
      way: random.int(6),
    });
    made.options = {
      runType: random.pick(RUN_TYPES),
      ...(random.chance(0.3) && {
        tags: ['one', random.pick(['two', 'one', 'sk-abcdefghijklmnopqrstuvwxyz0123456789'])],
      }),
      ...(random.chance(0.3) && { metadata: { depth, thread_id: 't-1', value: made.value(5) } }),
      ...(random.chance(0.05) && { project: 'another project' }),
      ...(random.chance(0.04) && { root: true }),
      ...(random.chance(0.04) && { enabled: false }),
    };
    const isWaiting = mayWait && ASYNC_KINDS.includes(kind);
    for (let more = depth > 3 ? 0 : random.int(3); more > 0 && count < calls; more--) {
      made.children.push(node(depth + 1, isWaiting));
    }
    return made;
  };
  const roots = [];
  while (count < calls) roots.push(node(0, !isSync));
  return { roots, isSync };
}

/** Runs a program with a build, and returns what its code saw of its calls. */
export async function performed(program, runspan) {
  const seen = [];
  const world = { runspan, seen, see: (node, ...what) => seen.push([node.name, ...what]) };
  for (const root of program.roots) {
    const result = guarded(world, root, () => perform(world, root));
    if (!program.isSync) await result;
  }
  return seen;
}

/** Calls and notes how it ended; what a node throws does not end its parent. */
function guarded(world, node, call) {
  try {
    const result = call();
    if (!(result instanceof Promise)) return result;
    return result.catch((error) => world.see(node, 'rejected', error === node.error || String(error)));
  } catch (error) {
    world.see(node, 'threw', error === node.error || String(error));
  }
}

const perform = (world, node) => WAYS[node.kind](world, node);

/** The work inside of a run: changes of the run, calls below, a result or an error. */
function work(world, node, below = true) {
  touch(node, world.runspan.currentRun());
  if (below) for (const child of node.children) guarded(world, child, () => perform(world, child));
  if (node.fails) throw failed(node);
  node.result = node.value(1);
  return node.result;
}

async function workLater(world, node) {
  touch(node, world.runspan.currentRun());
  await undefined;
  for (const child of node.children) await guarded(world, child, () => perform(world, child));
  if (node.fails) throw failed(node);
  return node.value(1);
}

function failed(node) {
  const cause = new TypeError('the cause', { cause: { code: 7 } });
  const values = [
    new Error(`${node.name} failed`),
    new RangeError('with cause', { cause }),
    'a text',
    undefined,
    { code: 5 },
  ];
  node.error = [...values, new AggregateError([cause, 'text'], 'several')][node.way];
  return node.error;
}

/** Changes what is recorded of a run, in one of several ways. */
function touch(node, run) {
  if (run === undefined || node.options.enabled === false) return;
  if (node.way === 0) run.event('step', { at: node.depth, value: node.value(2) });
  if (node.way === 1) run.set({ metadata: { set: node.value(3) }, tags: ['late'] });
  if (node.way === 2) run.attach('notes', Buffer.from(`notes of ${node.name}`), 'text/plain');
  if (node.way === 3) run.set({ usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } });
  if (node.way === 4) run.set({ inputs: { replaced: node.value(4) }, name: `${node.name} renamed` });
}

const named = (node, more) => ({ name: node.name, ...node.options, ...more });

const WAYS = {
  call(world, node) {
    const traced = world.runspan.traceable(() => work(world, node), named(node));
    const args = [[], [node.value(0)], [node.value(0), 'second']][node.way % 3];
    world.see(node, 'returned', traced(...args) === node.result);
  },
  processed(world, node) {
    const inputs = (args) => ({ count: args.length, first: args[0] });
    const outputs = node.way === 5 ? () => raise(new Error('no outputs')) : (value) => ({ wrapped: value });
    const traced = world.runspan.traceable(() => work(world, node), named(node, { inputs, outputs }));
    world.see(node, 'returned', traced(node.value(0)) === node.result);
  },
  generator(world, node) {
    const aggregate = node.way < 2 ? (chunks) => ({ joined: chunks.length }) : undefined;
    const options = named(node, aggregate && { aggregate });
    const traced = world.runspan.traceable(function* () {
      yield 'chunk 1';
      yield node.value(0);
      return work(world, node);
    }, options);
    const got = [];
    for (const chunk of traced('in')) {
      got.push(typeof chunk);
      if (node.leaves) break;
    }
    world.see(node, 'yielded', got);
  },
  manual(world, node) {
    const { runspan } = world;
    const given = { ...named(node), inputs: { v: node.value(0) } };
    delete given.enabled;
    const parent = node.way % 2 === 0 ? runspan.currentRun() : undefined;
    const run = parent === undefined ? runspan.startRun(given) : parent.child(given);
    runspan.withRun(run, () => {
      for (const child of node.children) guarded(world, child, () => perform(world, child));
    });
    touch(node, run);
    if (node.fails) run.fail(failed(node));
    else if (node.ends) run.end(node.value(1));
    world.see(node, 'run', run.name, run.runType, run.parentRunId !== undefined);
  },
  remote(world, node) {
    const { runspan } = world;
    const outputs = (value) => ({ fields: Object.keys(value) });
    const traced = runspan.traceable(() => runspan.toHeaders(), named(node, { outputs }));
    const headers = traced('call a service');
    const remote = runspan.fromHeaders(headers, { accept: ['project', 'tags', 'metadata'] });
    runspan.withRun(remote, () => work(world, { ...node, fails: false }));
    world.see(node, headers);
  },
  async async(world, node) {
    const traced = world.runspan.traceable(async () => workLater(world, node), named(node));
    world.see(node, 'resolved', typeof (await traced(node.value(0))));
  },
  async slow(world, node) {
    const traced = world.runspan.traceable(async () => {
      await new Promise((done) => setTimeout(done, 15));
      return workLater(world, node);
    }, named(node));
    world.see(node, 'resolved', typeof (await traced.with({ tags: ['with'] })(1, 2)));
  },
  async concurrent(world, node) {
    const traced = world.runspan.traceable(
      () => Promise.all(node.children.map((child) => guarded(world, child, () => perform(world, child)))),
      named(node),
    );
    world.see(node, 'resolved', (await traced()).length);
  },
  async asyncGenerator(world, node) {
    const traced = world.runspan.traceable(async function* () {
      yield { delta: 'a' };
      yield node.value(0);
      await workLater(world, node);
    }, named(node));
    let count = 0;
    for await (const _ of traced({ stream: true })) if (++count === 1 && node.leaves) break;
    world.see(node, 'yielded', count);
  },
  async webStream(world, node) {
    const traced = world.runspan.traceable(
      () => ReadableStream.from(['a', { b: 1 }, node.value(0) ?? 'c']),
      named(node),
    );
    let count = 0;
    for await (const _ of traced('web')) if (++count === 2 && node.leaves) break;
    world.see(node, 'read', count);
  },
  async nodeStream(world, node) {
    const traced = world.runspan.traceable(() => Readable.from(['a', 'b', { c: 1 }]), named(node));
    let count = 0;
    for await (const _ of traced('node')) if (++count === 2 && node.leaves) break;
    world.see(node, 'read', count);
  },
  async thenable(world, node) {
    const traced = world.runspan.traceable(() => lazy(() => work(world, node, false)), named(node));
    world.see(node, 'resolved', typeof (await traced(1)));
  },
};

/** Begins only when it is awaited, as some query builders do. */
function lazy(begin) {
  // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tried
  return { then: (done, fail) => Promise.resolve().then(begin).then(done, fail) };
}

function raise(error) {
  throw error;
}
