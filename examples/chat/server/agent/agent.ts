import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import type { BaseCheckpointSaver, LangGraphRunnableConfig } from '@langchain/langgraph';
import { createAgent, createMiddleware, humanInTheLoopMiddleware, ToolMessage, tool } from 'langchain';
import { z } from 'zod';
import type { Agent } from '../runs/run.ts';
import type { Documents } from './documents.ts';

export interface SupervisorOptions {
  readonly model: BaseChatModel;
  readonly documents: Documents;
  /** Folder for `notes.md`. If it is undefined, notes are kept in memory and are lost when the process ends. */
  readonly data: string | undefined;
  readonly checkpointer: BaseCheckpointSaver;
}

/** Creates the chat's agent: a supervisor with two subagents. To build your own chat, change this file first. */
export function createSupervisor({ model, documents, data, checkpointer }: SupervisorOptions): Agent {
  const researcher = createAgent({
    name: 'researcher',
    model,
    tools: [searchTool(documents)],
    systemPrompt:
      'You are a researcher. Search the documents, and answer in two or three sentences from them alone. Name the sources.',
  });
  const writer = createAgent({
    name: 'writer',
    model,
    systemPrompt: 'You are a writer. Combine the given findings into one short, clear text. Add nothing.',
  });
  const supervisor = createAgent({
    name: 'supervisor',
    model,
    tools: [
      taskTool([
        { name: 'researcher', description: 'finds what the documents say about one question', agent: researcher },
        { name: 'writer', description: 'combines findings into one text', agent: writer },
      ]),
      noteTool(data),
    ],
    middleware: [closeOpenCalls, humanInTheLoopMiddleware({ interruptOn: { save_note: APPROVAL } })],
    checkpointer,
    systemPrompt:
      'You answer questions about the documents. Give each question that needs them to the researcher, several at once ' +
      'if they are independent, and findings that have to be combined to the writer. Save a note if the user asks for ' +
      'it. Answer briefly, from the findings of the subagents.',
  });
  return supervisor.graph;
}

interface Subagent {
  readonly name: string;
  /** Text by which the supervisor chooses a subagent. */
  readonly description: string;
  readonly agent: Pick<ReturnType<typeof createAgent>, 'graph'>;
}

const APPROVAL = {
  allowedDecisions: ['approve' as const, 'edit' as const, 'reject' as const],
  description: 'Save this note?',
};

/**
 * Creates the tool with which the supervisor calls a subagent. Clients of the protocol recognize subagents by this
 * tool's name and arguments.
 */
function taskTool(subagents: readonly Subagent[]) {
  const list = subagents.map(({ name, description }) => `- ${name}: ${description}`).join('\n');
  return tool(
    async ({ subagent_type, description }, config: LangGraphRunnableConfig) => {
      const subagent = subagents.find(({ name }) => name === subagent_type);
      if (subagent === undefined)
        return `There is no subagent ${subagent_type}. The subagents are ${subagents.map(({ name }) => name).join(', ')}.`;
      const { messages } = await subagent.agent.graph.invoke(
        { messages: [{ role: 'user', content: description }] },
        { ...config, metadata: { ...config.metadata, lc_agent_name: subagent.name } },
      );
      return messages.at(-1)?.text ?? '';
    },
    {
      name: 'task',
      description: `Gives a task to a subagent, and returns its answer. The subagent does not know the conversation.\n${list}`,
      schema: z.object({
        subagent_type: z.string().describe('The name of the subagent.'),
        description: z.string().describe('The task, with everything that the subagent has to know.'),
      }),
    },
  );
}

function searchTool(documents: Documents) {
  return tool(
    ({ query }) => {
      const passages = documents.search(query);
      if (passages.length === 0) return 'The documents say nothing about this.';
      const headings = passages.map(({ source, heading }) => `${source}${heading === '' ? '' : `, "${heading}"`}`);
      return passages.map(({ text }, index) => `[${index + 1}] ${headings[index]}\n${text}`).join('\n\n');
    },
    {
      name: 'search_docs',
      description: 'Searches the documents, and returns the paragraphs that match the words best.',
      schema: z.object({ query: z.string().describe('Words to search for.') }),
    },
  );
}

/**
 * Creates a tool that has an effect outside the conversation. The middleware therefore asks the user before each call.
 */
function noteTool(folder: string | undefined) {
  return tool(
    async ({ text }) => {
      if (text.trim() === '') return 'Nothing was saved, because the note is empty.';
      if (folder === undefined) return `Saved until the chat ends: ${text}`;
      await appendFile(join(folder, 'notes.md'), `- ${text.replaceAll('\n', '\n  ')}\n`, { mode: 0o600 });
      return `Saved: ${text}`;
    },
    {
      name: 'save_note',
      description: 'Saves a note for the user. The user is asked before it is saved.',
      schema: z.object({ text: z.string().describe('The note, word for word.') }),
    },
  );
}

/**
 * Adds results to tool calls that have none. A stopped run leaves such calls behind, and models reject a conversation
 * that contains them.
 */
const closeOpenCalls = createMiddleware({
  name: 'CloseOpenCalls',
  wrapModelCall: (request, handler) => {
    const closed = new Set(
      request.messages.map((message) => (ToolMessage.isInstance(message) ? message.tool_call_id : '')),
    );
    const messages = request.messages.flatMap((message) => {
      const calls = 'tool_calls' in message ? (message.tool_calls as { id?: string; name: string }[]) : [];
      const open = calls.filter(({ id = '' }) => !closed.has(id));
      const results = open.map(
        ({ id = '', name }) => new ToolMessage({ tool_call_id: id, name, content: 'Stopped before it ended.' }),
      );
      return [message, ...results];
    });
    return handler({ ...request, messages });
  },
});
