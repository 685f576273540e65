import { type BaseMessageLike, coerceMessageLikeToMessage } from '@langchain/core/messages';
import { type StructuredToolInterface, tool } from '@langchain/core/tools';
import { interrupt } from '@langchain/langgraph';
import { z } from 'zod';
import { fieldsOf } from '../protocol/fields.ts';

/** What the run stops with until somebody has decided. */
export interface ApprovalRequest {
  readonly action: 'save_note';
  readonly question: string;
  readonly text: string;
  /** Of an answer, whose `decision` has to be one of them. */
  readonly decisions: readonly string[];
}

/** The tool that changes something outside of the conversation, and asks before it does. */
export function noteTool(save: (text: string) => Promise<string>): StructuredToolInterface {
  return tool(
    async ({ text }) => {
      const request: ApprovalRequest = {
        action: 'save_note',
        question: 'Save this note?',
        text,
        decisions: ['approve', 'decline'],
      };
      // Everything before this line runs again when the answer is there.
      const answer: unknown = interrupt(request);
      const { decision, text: changed, messages } = fieldsOf(answer);
      // A message that was sent in the place of an answer is not lost.
      if (Array.isArray(messages)) {
        const said = messages.map((message) => coerceMessageLikeToMessage(message as BaseMessageLike).text);
        return declined(`Nothing was saved. The user said instead: ${said.join('\n')}`);
      }
      if (decision === 'decline') return declined('The user declined; nothing was saved.');
      if (decision !== 'approve') return declined('Nothing was saved: the answer neither approves nor declines.');
      if (changed === undefined || changed === null) return [await save(text), undefined];
      if (typeof changed !== 'string') return declined('Nothing was saved: what is to be saved instead is no text.');
      return changed.trim() === ''
        ? declined('The user left nothing of it; nothing was saved.')
        : [await save(changed), { input: { text: changed } }];
    },
    {
      name: 'save_note',
      description: 'Saves a note for the user. The user is asked before it is saved.',
      schema: z.object({ text: z.string().describe('The note, word by word.') }),
      responseFormat: 'content_and_artifact',
    },
  );
}

/** What the model reads, and beside it what a page shows the call as: it was done, and did nothing. Of one that was changed it is the `input` that it was done with. */
function declined(text: string): [string, { readonly declined: true }] {
  return [text, { declined: true }];
}
