import { Command } from '@langchain/langgraph';
import type { Agent } from './agent.ts';
import type { RunRequest } from './runs.ts';

/**
 * What the agent is given. A thread that waits for an answer takes whatever comes for it, a message as well (the protocol's `run.start`
 * on an interrupted thread); a run from an earlier checkpoint begins a branch, and answers nothing.
 */
export async function inputFor(
  agent: Agent,
  threadId: string,
  { input, checkpointId }: RunRequest,
): Promise<{ input: unknown; checkpointId?: string | undefined }> {
  if (input instanceof Command || input === null || checkpointId !== undefined) return { input, checkpointId };
  const { tasks } = await agent.getState({ configurable: { thread_id: threadId } });
  const isAsking = tasks.some(({ interrupts }) => (interrupts ?? []).length > 0);
  return { input: isAsking ? new Command({ resume: input }) : input };
}
