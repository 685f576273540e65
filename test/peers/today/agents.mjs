// Agents of several frameworks at the same time: `agents.mjs <number of agents of each>`. The question of each agent has its
// name, and so have its answers. The answers of the model at `MODEL` call the tool once. With `off` as a second argument,
// every second agent is off.

import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import '@langchain/core/context';
import { RunnableLambda } from '@langchain/core/runnables';
import { Mastra } from '@mastra/core';
import { Agent as MastraAgent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { Observability } from '@mastra/observability';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { tool as aiTool, isStepCount, ToolLoopAgent } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';

const baseURL = `${process.env.MODEL}/v1`;
const openai = new OpenAI({ apiKey: 'none', baseURL });
const anthropic = new Anthropic({ apiKey: 'none', baseURL: process.env.MODEL });
const ai = createOpenAI({ apiKey: 'none', baseURL });
const query = z.object({ query: z.string() });

/** The work of a tool, with a model call of its own. */
async function lookUp({ query }) {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
  const messages = [{ role: 'user', content: `${query}?` }];
  return (await openai.chat.completions.create({ model: 'small', messages })).choices[0].message.content;
}
const look_up = { name: 'look_up', description: 'Finds', inputSchema: query, parameters: query, execute: lookUp };

const loop = new ToolLoopAgent({
  model: ai.chat('small'),
  tools: { look_up: aiTool(look_up) },
  stopWhen: isStepCount(2),
});
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: openai, useResponses: false }) });
const agent = new Agent({ name: 'agent', model: 'small', tools: [tool(look_up)] });
const schema = { type: 'object', properties: { query: { type: 'string' } } };
const ofAnthropic = { name: 'look_up', input_schema: schema, parse: (it) => it, run: lookUp };
const other = { name: 'other', exportTracingEvent: async () => {}, flush: async () => {}, shutdown: async () => {} };
const mastra = new Mastra({
  logger: false,
  agents: {
    agent: new MastraAgent({
      ...{ id: 'agent', name: 'agent', instructions: 'Be kind.', model: ai.chat('small') },
      tools: { look_up: createTool({ ...look_up, id: 'look_up' }) },
    }),
  },
  observability: new Observability({ configs: { default: { serviceName: 'test', exporters: [other] } } }),
});

async function overMcp(text) {
  const server = new McpServer({ name: 'server', version: '1.0.0' });
  server.registerTool('look_up', { inputSchema: query.shape }, async (args) => {
    return { content: [{ type: 'text', text: await lookUp(args) }] };
  });
  const client = new Client({ name: 'client', version: '1.0.0' });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  await client.connect(ours);
  return (await client.callTool({ name: 'look_up', arguments: { query: text } })).content[0].text;
}

const frameworks = {
  ai: async (prompt) => (await loop.generate({ prompt })).text,
  aistream: async (prompt) => await (await loop.stream({ prompt })).text,
  openaiagents: async (text) => (await runner.run(agent, text)).finalOutput,
  runtools: async (content) => {
    const definition = { name: 'look_up', parse: JSON.parse, parameters: schema, function: lookUp };
    const tools = [{ type: 'function', function: definition }];
    const messages = [{ role: 'user', content }];
    return openai.chat.completions.runTools({ model: 'small', messages, tools }).finalContent();
  },
  anthropic: async (content) => {
    const messages = [{ role: 'user', content }];
    const body = { model: 'small', max_tokens: 99, messages, tools: [ofAnthropic] };
    return (await anthropic.beta.messages.toolRunner(body).runUntilDone()).content[0].text;
  },
  langchain: (text) =>
    RunnableLambda.from((it) => lookUp({ query: it }))
      .pipe((it) => `${it}!`)
      .invoke(text),
  mastra: async (text) => (await mastra.getAgent('agent').generate(text)).text,
  mcp: overMcp,
};

/** The ways in which a call is off. */
async function offWays() {
  const { createExporter, fromHeaders, traceable, withRun } = await import('runspan');
  const { traceable: ofLangSmith } = await import('runspan/langsmith');
  const order = '20261128T000000000000Z019a0000-0000-7000-8000-000000000000';
  const unsampled = fromHeaders({ 'runspan-trace': order, baggage: 'runspan-sampled=false' });
  const exporter = createExporter({ tracing: false });
  return [
    (ask, text) => traceable(ask, { enabled: false })(text),
    (ask, text) => withRun(unsampled, () => ask(text)),
    (ask, text) => ofLangSmith(ask, { tracingEnabled: false })(text),
    (ask, text) => traceable(ask, { exporter })(text),
  ];
}

const count = Number(process.argv[2]);
const ways = process.argv[3] === 'off' ? await offWays() : [];
const all = Object.entries(frameworks).flatMap(([name, ask], at) => {
  return Array.from({ length: count }, (_, index) => {
    const way = (index + at) % 2 === 0 ? ways[Math.floor(index / 2) % ways.length] : undefined;
    return way === undefined ? ask(`${name}/${index}`) : way(ask, `secret-${name}`);
  });
});
for (const answer of await Promise.all(all)) console.log(answer);
