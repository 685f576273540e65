// Runs the agents of a message at the same time, each as the program that it describes, and sends back their runs and what
// their callers saw. `steps` are the answers of the model: calls of tools such as `tool+bad`, or `ok`, `fail`, `hang`, `stall`.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { queryObjects } from 'node:v8';
import { createOpenAI } from '@ai-sdk/openai';
import * as claude from '@anthropic-ai/claude-agent-sdk';
import { Mastra } from '@mastra/core';
import { Agent as MastraAgent } from '@mastra/core/agent';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { Observability } from '@mastra/observability';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { generateText, isStepCount, streamText } from 'ai';
import OpenAI from 'openai';
import { createExporter, currentRun, fromHeaders, traceable, withRun } from 'runspan';
import { wrapClaudeAgentSDK } from 'runspan/claude-agent';
import { traceable as ofLangSmith, RunTree, withRunTree } from 'runspan/langsmith';
import { RunspanBridge } from 'runspan/mastra';
import { recordRuns } from 'runspan/testing';
import { z } from 'zod';
import { randomFrom } from '../../faults/random.ts';
import { HumanMessage } from '../zero-code/node_modules/@langchain/core/dist/messages/index.js';
import { RunnableLambda } from '../zero-code/node_modules/@langchain/core/dist/runnables/index.js';
import { tool as langchainTool } from '../zero-code/node_modules/@langchain/core/dist/tools/index.js';
import { Command, interrupt, MemorySaver } from '../zero-code/node_modules/@langchain/langgraph/dist/index.js';
import { createReactAgent } from '../zero-code/node_modules/@langchain/langgraph/dist/prebuilt/index.js';
import { ChatOpenAI } from '../zero-code/node_modules/@langchain/openai/dist/index.js';

const turn = () => new Promise(setImmediate);
let random = Math.random;

/** Lets others go first, so that the steps of the agents interleave. */
async function turns() {
  for (let count = Math.floor(random() * 20); count > 0; count--) await turn();
}

/** The agents that run, by their marks. Each prompt and each argument of a tool contains the mark. */
const live = new Map();
const agentIn = (text) => live.get(/#(\w+)/.exec(text)?.[1]);

async function found(query) {
  await turns();
  return `found ${query}`;
}
const find = traceable(found, { name: 'find' });

const work = {
  tool: ({ query }) => find(query),
  pay: ({ query }) => find(query),
  bad: async ({ query }) => {
    throw new TypeError(`not ${await find(query)}`);
  },
  /** Ends when the signal of its agent fires. */
  stuck: async ({ query }) => {
    const { signal, waits } = agentIn(query);
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    waits();
    await aborted;
    throw signal.reason;
  },
};
const names = Object.keys(work);

/** Returns the tools by their names. Each call is a step of its agent. */
function toolsOf(make, own = work) {
  const started = (name) => (args) => {
    agentIn(args.query).started.push(name);
    return own[name](args);
  };
  return Object.fromEntries(names.map((name) => [name, make(name, started(name))]));
}

/** The model service. The number of its earlier answers in a request selects the step of the script in the prompt. */
const service = createServer(async (request, response) => {
  const text = (await request.toArray()).join('');
  const { mark, steps, started, waits } = agentIn(text);
  const { messages, stream } = JSON.parse(text);
  await turns();
  started.push('llm');
  const step = steps[messages.filter(({ role }) => role === 'assistant').length] ?? 'ok';
  // An idle connection would keep the runs of its requests in memory.
  response.writeHead(step === 'fail' ? 400 : 200, {
    'content-type': stream && step !== 'fail' ? 'text/event-stream' : 'application/json',
    connection: 'close',
  });
  if (step === 'fail') return response.end('{"error":{"message":"asked to fail"}}');
  if (step === 'hang') return waits();
  const id = randomUUID();
  const tool_calls = step.split('+').flatMap((name, index) => {
    const fn = { name, arguments: `{"query":"#${mark}"}` };
    return names.includes(name) ? [{ index, id: `call-${id}-${index}`, type: 'function', function: fn }] : [];
  });
  const hasCalls = tool_calls.length > 0;
  const message = { role: 'assistant', ...(hasCalls ? { content: null, tool_calls } : { content: `ok #${mark}` }) };
  const finish_reason = hasCalls ? 'tool_calls' : 'stop';
  const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 };
  const body = (fields) => JSON.stringify({ id: `chatcmpl-${id}`, created: 1_767_225_600, model: 'small', ...fields });
  if (!stream) return response.end(body({ choices: [{ index: 0, message, finish_reason }], usage }));
  const write = (fields) => response.write(`data: ${body(fields)}\n\n`);
  const finish = () => {
    write({ choices: [{ index: 0, delta: {}, finish_reason }] });
    write({ choices: [], usage });
    response.end('data: [DONE]\n\n');
  };
  if (step === 'stall') live.get(mark).finish = finish;
  write({ choices: [{ index: 0, delta: message, finish_reason: null }] });
  return step === 'stall' ? waits() : finish();
});
await once(service.listen(0, '127.0.0.1'), 'listening');

const access = { apiKey: 'none', baseURL: `http://127.0.0.1:${service.address().port}/v1` };
/** Each framework has its own, because the AI SDK's integration replaces the methods of a model. */
const modelOf = () => createOpenAI(access).chat('small');
const query = z.object({ query: z.string() });
const described = (name) => ({ name, description: name, parameters: query, schema: query, inputSchema: query });

const openAIClient = new OpenAI({ ...access, maxRetries: 0 });
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses: false }) });
const ofAi = toolsOf((name, execute) => ({ ...described(name), execute, needsApproval: name === 'pay' }));
const agent = new Agent({ name: 'agent', model: 'small', tools: Object.values(ofAi).map(tool) });
const model = modelOf();

const ofLangChain = (own) => toolsOf((name, execute) => langchainTool(execute, described(name)), own);
const steps = ofLangChain();
const chat = new ChatOpenAI({ model: 'small', apiKey: 'none', configuration: access, maxRetries: 0 });
const pay = async ({ query }) => interrupt('Pay?') && find(query);
const graph = createReactAgent({
  llm: chat,
  tools: Object.values(ofLangChain({ ...work, pay })),
  checkpointer: new MemorySaver(),
});
const chain = RunnableLambda.from(async ({ text, streamed, leaves }, config) => {
  const messages = [new HumanMessage(text)];
  const bound = chat.bindTools(Object.values(steps));
  for (;;) {
    let answer;
    for await (const part of streamed ? await bound.stream(messages, config) : [await bound.invoke(messages, config)]) {
      if (leaves()) return 'left';
      answer = answer?.concat(part) ?? part;
    }
    if (!answer.tool_calls?.length) return undefined;
    const results = answer.tool_calls.map((call) => steps[call.name].invoke(call, config));
    messages.push(answer, ...(await Promise.all(results)));
  }
}).withConfig({ runName: 'chain' });

const { query: ask, tool: claudeTool, createSdkMcpServer } = wrapClaudeAgentSDK(claude);
const pathToClaudeCodeExecutable = fileURLToPath(new URL('../claude-agent/claude-code.mjs', import.meta.url));
const bare = toolsOf((_, execute) => execute);

function mastraOf() {
  const approved = { pay: { requireApproval: true } };
  const tools = toolsOf((id, execute) => createTool({ ...described(id), id, execute, ...approved[id] }));
  const own = { id: 'agent', name: 'agent', instructions: 'Be kind.', model: modelOf(), tools, maxRetries: 0 };
  const configs = { default: { serviceName: 'test', bridge: new RunspanBridge() } };
  const parts = { storage: new InMemoryStore(), observability: new Observability({ configs }) };
  return new Mastra({ logger: false, agents: { agent: new MastraAgent(own) }, ...parts });
}
let mastra;

/** Each returns `left` if the caller does not read to the end, and a function that approves if the agent waits for that. */
const frameworks = {
  async agents(own, input = own.text) {
    const { signal, streamed, leaves } = own;
    const result = await runner.run(agent, input, { stream: streamed, signal });
    for await (const _ of streamed ? result : []) if (leaves()) return 'left';
    await result.completed;
    if (result.cancelled) throw signal.reason;
    if (result.interruptions.length === 0) return undefined;
    return () => {
      for (const item of result.interruptions) result.state.approve(item);
      return frameworks.agents(own, result.state);
    };
  },
  async ai(own, messages = [{ role: 'user', content: own.text }]) {
    const { signal: abortSignal, streamed, leaves } = own;
    const options = { model, messages, tools: ofAi, stopWhen: isStepCount(9), abortSignal, maxRetries: 0 };
    const result = streamed ? streamText({ ...options, onError() {} }) : await generateText(options);
    for await (const { type, error } of streamed ? result.fullStream : []) {
      if (leaves()) return 'left';
      if (type === 'error' || type === 'abort') throw error;
    }
    const content = (await result.content).flatMap(({ type, approvalId }) =>
      type === 'tool-approval-request' ? [{ type: 'tool-approval-response', approvalId, approved: true }] : [],
    );
    if (content.length === 0) return undefined;
    const answered = await result.responseMessages;
    return () => frameworks.ai(own, [...messages, ...answered, { role: 'tool', content }]);
  },
  async mastra(own, approval) {
    const { text, signal: abortSignal, streamed, leaves } = own;
    const options = { abortSignal, maxSteps: 9, ...approval };
    const asked = mastra.getAgent('agent');
    const result = await (approval
      ? asked[streamed ? 'approveToolCall' : 'approveToolCallGenerate'](options)
      : asked[streamed ? 'stream' : 'generate'](text, options));
    for await (const _ of streamed ? result.fullStream : []) if (leaves()) return 'left';
    const [error, reason] = [await result.error, await result.finishReason];
    if (error || reason === 'aborted') throw error;
    if (reason !== 'suspended') return undefined;
    const { toolCallId } = await result.suspendPayload;
    return () => frameworks.mastra(own, { runId: result.runId, toolCallId });
  },
  langchain: ({ signal, ...own }) => chain.invoke(own, { signal }),
  async langgraph(own, input = { messages: [new HumanMessage(own.text)] }, thread_id = randomUUID()) {
    const { signal, streamed, leaves } = own;
    const config = { configurable: { thread_id }, signal };
    if (!streamed) await graph.invoke(input, config);
    else
      for await (const _ of await graph.stream(input, { ...config, streamMode: 'messages' }))
        if (leaves()) return 'left';
    const { next } = await graph.getState(config);
    return next.length > 0 ? () => frameworks.langgraph(own, new Command({ resume: true }), thread_id) : undefined;
  },
  async claude({ text, mark, steps: [RECORDING, then], ending, waits, signal }) {
    const abortController = new AbortController();
    signal.addEventListener('abort', () => abortController.abort(signal.reason));
    const price = claudeTool('price', 'Prices', { item: z.string() }, async () => {
      return { content: [{ type: 'text', text: await bare.tool({ query: `#${mark}` }) }] };
    });
    const env = { ...process.env, RECORDING, ID: `${mark}_`, ...(then === 'hang' && { LINES: '7' }) };
    const mcpServers = { shop: createSdkMcpServer({ name: 'shop', tools: [price] }) };
    const hooks = { PreToolUse: [{ hooks: [async () => ({})] }] };
    const options = { abortController, pathToClaudeCodeExecutable, mcpServers, hooks, env };
    for await (const { type, is_error, subtype } of ask({ prompt: text, options })) {
      if (is_error) throw new Error(subtype);
      if (then !== 'hang' || type !== 'assistant') continue;
      if (ending === 'leave') return 'left';
      waits();
    }
    // The messages of an aborted query may also just end.
    signal.throwIfAborted();
    return undefined;
  },
  async mcp({ mark, steps, signal }) {
    const server = new McpServer({ name: 'server', version: '1.0.0' });
    toolsOf((name, execute) => {
      const handler = async (args) => ({ content: [{ type: 'text', text: await execute(args) }] });
      server.registerTool(name, { inputSchema: query.shape }, handler);
    });
    const own = new Client({ name: 'client', version: '1.0.0' });
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await Promise.all([server.connect(theirs), own.connect(ours)]);
    const call = async (name) => {
      if (name === 'fail') await own.getPrompt({ name: `absent #${mark}` });
      const { isError } = await own.callTool({ name, arguments: { query: `#${mark}` } }, undefined, { signal });
      if (isError) throw new Error('The tool failed.');
    };
    for (const step of steps) if (step !== 'ok') await Promise.all(step.split('+').map(call));
  },
  async langsmith({ text, steps, mark }) {
    const root = new RunTree({ name: 'root', run_type: 'chain', inputs: { text } });
    await root.postRun();
    const post = async (name) => {
      const run = root.createChild({ name, run_type: 'tool', inputs: { query: `#${mark}` } });
      await run.postRun();
      await withRunTree(run, () => bare[name]({ query: `#${mark}` })).then(
        (output) => run.end({ output }),
        (error) => run.end(undefined, String(error)),
      );
      await run.patchRun();
    };
    const turns = steps.map((step) => step.split('+').filter((name) => names.includes(name)));
    for (const calls of turns) await Promise.all(calls.map(post));
    const failed = steps.includes('fail') ? 'Error: asked to fail' : undefined;
    await root.end({ text: 'ok' }, failed);
    await root.patchRun();
    if (failed) throw new Error(failed);
  },
};

const order = '20261128T000000000000Z019a0000-0000-7000-8000-000000000000';
const unsampled = fromHeaders({ 'runspan-trace': order, baggage: 'runspan-sampled=false' });
const exporter = createExporter({ tracing: false });

/** The callers of agents: traced ones, and those for which tracing is off. */
const callers = {
  none: (call) => call,
  traced: (call) => traceable(call, { name: 'caller' }),
  disabled: (call) => traceable(call, { enabled: false }),
  unsampled: (call) => (text) => withRun(unsampled, () => call(text)),
  langsmith: (call) => ofLangSmith(call, { tracingEnabled: false }),
  exporter: (call) => traceable(call, { exporter }),
};

/** Returns what the caller of an agent sees, and the steps that the agent has started. */
async function callerOf({ mark, framework, ending, caller, ...program }) {
  const controller = new AbortController();
  const started = [];
  const own = { ...program, mark, ending, started, signal: controller.signal, text: `#${mark} ${program.steps};` };
  own.waits = () => {
    if (ending === 'abort') controller.abort();
    if (ending === 'timeout') controller.abort(new DOMException('It took too long.', 'TimeoutError'));
  };
  own.leaves = () => {
    if (ending === 'leave' && own.finish) setImmediate(own.finish);
    return ending === 'leave' && own.finish !== undefined;
  };
  live.set(mark, own);
  await turns();
  const call = async (_text) => {
    for (let next = await frameworks[framework](own); ; next = await next()) {
      if (typeof next !== 'function') return next ?? 'success';
      if (ending !== 'approve') return 'paused';
    }
  };
  const outcome = await callers[caller](call)(own.text).catch(() =>
    ending === 'abort' && own.signal.aborted ? 'cancelled' : 'error',
  );
  return { outcome, started };
}

const probe = recordRuns();
const Run = traceable(() => currentRun().constructor)();
probe.stop();

process.on('message', async ({ programs, seed, keptMax }) => {
  random = randomFrom(seed);
  const recorder = recordRuns();
  const { start, end } = recorder.exporter;
  const ends = {};
  recorder.exporter.start = (run) => {
    ends[run.id] = 0;
    return start(run);
  };
  recorder.exporter.end = (run) => {
    ends[run.id]++;
    end(run);
  };
  mastra = mastraOf();
  const seen = await Promise.all(programs.map(callerOf));
  const isOpen = () => Object.values(ends).includes(0);
  // The signals of the agents would keep abandoned streams in memory.
  live.clear();
  for (let round = 0; round < 500 && isOpen(); round++) {
    globalThis.gc();
    await turn();
  }
  await mastra.observability.shutdown();
  recorder.stop();
  const { runs } = recorder;
  recorder.clear();
  const kept = () => queryObjects(Run, { format: 'count' });
  // What a framework still holds is released later.
  for (let round = 0; round < 200 && keptMax > 0 && kept() > keptMax; round++) await turn();
  process.send({ runs, callers: seen, ends, kept: keptMax > 0 ? kept() : 0 });
});
process.send('ready');
