import { type Conversation, isBusy } from './conversation.ts';
import { lastAnswerOf } from './turns.ts';

/** What a reader who does not see the page is told. */
export function announcementOf(conversation: Conversation): string {
  const { run, requests } = conversation;
  if (requests.length > 0 && !isBusy(conversation)) return 'The agent asks for your approval.';
  switch (run.status) {
    case 'running':
      return 'The agent is at work.';
    case 'completed':
      return `Answer: ${lastAnswerOf(conversation)}`;
    case 'failed':
      return `The run has failed: ${run.error ?? ''}`;
    case 'interrupted':
      return 'The run was stopped.';
    default:
      return '';
  }
}
