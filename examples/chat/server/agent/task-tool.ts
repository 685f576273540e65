import { HumanMessage } from '@langchain/core/messages';
import { type StructuredToolInterface, tool } from '@langchain/core/tools';
import type { LangGraphRunnableConfig } from '@langchain/langgraph';
import { z } from 'zod';
import type { ToolLoop } from './tool-loop.ts';

export interface Subagent {
  readonly name: string;
  /** What it is good for, by which the supervisor chooses. */
  readonly description: string;
  readonly graph: ToolLoop;
}

/**
 * The tool by which a supervisor has something done by another agent. Its name and its arguments are those by which clients of the
 * protocol find subagents, and a namespace whose first message is the description is taken for the work of this call.
 */
export function taskTool(subagents: readonly Subagent[]): StructuredToolInterface {
  const byName = new Map(subagents.map((subagent) => [subagent.name, subagent]));
  return tool(
    async ({ subagent_type, description }, config: LangGraphRunnableConfig) => {
      const subagent = byName.get(subagent_type);
      if (subagent === undefined)
        throw new Error(`There is no subagent ${subagent_type}; there are ${[...byName.keys()].join(', ')}`);
      const { messages } = await subagent.graph.invoke(
        { messages: [new HumanMessage(description)] },
        { ...config, metadata: { ...config.metadata, lc_agent_name: subagent.name } },
      );
      return messages.at(-1)?.text ?? '';
    },
    {
      name: 'task',
      description: `Has a subagent do a task, and gives its answer. It knows nothing of the conversation.\n${subagents
        .map(({ name, description }) => `- ${name}: ${description}`)
        .join('\n')}`,
      schema: z.object({
        subagent_type: z.string().describe('Which one.'),
        description: z.string().describe('The task, with all that it has to know.'),
      }),
    },
  );
}
