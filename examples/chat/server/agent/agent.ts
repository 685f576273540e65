import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import type { BaseCheckpointSaver } from '@langchain/langgraph';
import type { Retriever } from '../documents/retriever.ts';
import { noteTool } from './note-tool.ts';
import { searchTool } from './search-tool.ts';
import { taskTool } from './task-tool.ts';
import { type ToolLoop, toolLoop } from './tool-loop.ts';

export interface AgentParts {
  readonly model: BaseChatModel;
  readonly documents: Retriever;
  /** Keeps a note that was approved, and says so. */
  readonly saveNote: (text: string) => Promise<string>;
  readonly checkpointer: BaseCheckpointSaver;
}

/** The agent that the chat talks to: a supervisor, and the two that it has work done by. This is the file to change first. */
export function createAgent({ model, documents, saveNote, checkpointer }: AgentParts): ToolLoop {
  const researcher = toolLoop({
    name: 'researcher',
    model,
    prompt:
      'You are a researcher. Search the documents, and answer in two or three sentences from what they say alone. Name the sources.',
    tools: [searchTool(documents)],
  });
  const writer = toolLoop({
    name: 'writer',
    model,
    prompt: 'You are a writer. Make of the findings that you are given one short, clear text. Add nothing of your own.',
    tools: [],
  });
  return toolLoop({
    name: 'supervisor',
    model,
    prompt:
      'You answer questions about the documents. Give each question that needs them to the researcher, several at once where they are independent, and findings that have to be ' +
      'brought together to the writer. Save a note when the user asks for it. Answer briefly, from what the subagents found.',
    tools: [
      taskTool([
        { name: 'researcher', description: 'finds what the documents say about one question', graph: researcher },
        { name: 'writer', description: 'makes one text of findings', graph: writer },
      ]),
      noteTool(saveNote),
    ],
    checkpointer,
  });
}
