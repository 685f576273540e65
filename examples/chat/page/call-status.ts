import { type Conversation, isBusy, type ToolCall } from './conversation.ts';
import type { Status } from './status-mark.tsx';

/**
 * How a call is doing. One that has no outcome is worked on, or waits for an answer, only in the last turn: those of earlier turns
 * were left, whatever the agent does now.
 */
export function callStatus(call: ToolCall | undefined, conversation: Conversation, isLive: boolean): Status {
  if (call !== undefined && call.status !== 'running') return call.status;
  if (!isLive) return 'stopped';
  if (isBusy(conversation)) return 'running';
  return conversation.requests.length > 0 ? 'waiting' : 'stopped';
}
