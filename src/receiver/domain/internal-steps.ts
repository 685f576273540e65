import type { RunFields } from './run-message.ts';

/** The tag with which LangGraph marks its own steps. */
const HIDDEN_TAG = 'langsmith:hidden';

/** Names that only LangChain and LangGraph give, to the steps that they add to those of the application. */
const NAMES =
  /^(?:__start__|__end__|LangGraphUpdateState|Runnable(?:Lambda|Sequence|Parallel|Map|Passthrough|Assign)|Channel(?:Write|Read)(?:<.*>)?|Branch<.*>)$/s;

/** What `createAgent` of LangChain writes to `ls_integration`, and the nodes that contain its model calls and tools. */
const [AGENT, AGENT_NODES] = ['langchain_create_agent', ['model_request', 'tools']];

/**
 * Returns whether a framework has added a run for itself. A name that an application may also use counts only if the
 * metadata tell that LangGraph has recorded the run. A model call, a tool or a retriever never counts.
 */
export function isInternalStep({ name = '', run_type, tags, extra }: RunFields): boolean {
  if (run_type !== 'chain') return false;
  if (NAMES.test(name) || tags?.includes(HIDDEN_TAG) === true) return true;
  const { langgraph_node: node, ls_integration: integration } = extra?.metadata ?? {};
  // The step of `createReactAgent` that inserts the system prompt.
  if (name === 'prompt') return typeof node === 'string' && node !== name;
  return integration === AGENT && node === name && AGENT_NODES.includes(name);
}
