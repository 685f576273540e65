// The names, tags and metadata are those that runspan's handler records with `createReactAgent` of LangGraph 1.7 and
// `createAgent` of LangChain 1.5.
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { makeRun, outlined } from '../support/records.ts';

const isInternal = (name: string, metadata: object = {}, changes: Partial<RunRecord> = {}) =>
  outlined(makeRun('1', name, { extra: { metadata: { ...metadata } }, ...changes })).internal === true;
const graph = { ls_integration: 'langgraph', langgraph_step: 1 };
const agent = { ls_integration: 'langchain_create_agent', langgraph_step: 1 };

test.each<[string, boolean, object?]>([
  ['__start__', true],
  ['RunnableLambda', true],
  ['RunnableSequence', true],
  ['ChannelWrite<agent,tools>', true],
  ['Branch<agent,route>', true],
  ['RunnableLambdaOfMine', false],
  ['agent', false, { ...graph, langgraph_node: 'agent' }],
  ['prompt', false],
  ['prompt', false, { ...graph, langgraph_node: 'prompt' }],
  ['prompt', true, { ...graph, langgraph_node: 'agent' }],
  ['model_request', true, { ...agent, langgraph_node: 'model_request' }],
  ['tools', true, { ...agent, langgraph_node: 'tools' }],
  ['tools', false, { ...graph, langgraph_node: 'tools' }],
  ['tools', false, { ...agent, langgraph_node: 'model_request' }],
  ['limit.before_model', false, { ...agent, langgraph_node: 'limit.before_model' }],
])('a run with the name %s is a step of the framework: %s, with the metadata %j', (name, expected, metadata) => {
  expect(isInternal(name, metadata)).toBe(expected);
  for (const run_type of ['llm', 'tool', 'retriever', 'embedding', 'prompt']) {
    expect(isInternal(name, metadata, { run_type })).toBe(false);
  }
});

test('a run that LangGraph marks as hidden is a step of the framework', () => {
  expect(isInternal('mine', {}, { tags: ['graph:step:0', 'langsmith:hidden'] })).toBe(true);
  expect(isInternal('mine', {}, { tags: ['graph:step:0'] })).toBe(false);
});
