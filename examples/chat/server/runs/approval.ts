import { type Fields, fieldsOf, messagesOf } from './messages.ts';

/**
 * A request of LangChain's `humanInTheLoopMiddleware`: `{ actionRequests: [{ name, args, description }], reviewConfigs:
 * [{ actionName, allowedDecisions }] }`. The response is `{ decisions: [{ type: 'approve' | 'edit' | 'reject', … }] }`
 * with one decision for each action. Requests from other sources may have any format.
 */
interface ApprovalRequest {
  readonly actionRequests: readonly Fields[];
  readonly reviewConfigs: readonly Fields[];
}

/**
 * Returns the mistake in a response, or undefined if there is none. A mistake would make the middleware fail the run.
 */
export function answerProblem(request: unknown, response: unknown): string | undefined {
  if (response === undefined) return 'Expected a response';
  if (!isApprovalRequest(request)) return undefined;
  const { decisions } = fieldsOf(response);
  if (!Array.isArray(decisions) || decisions.length !== request.actionRequests.length)
    return `Expected a response with "decisions", a list of ${request.actionRequests.length}, one for each action`;
  for (const [index, decision] of decisions.entries()) {
    const { type, editedAction } = fieldsOf(decision);
    const allowedDecisions = allowedFor(request, index);
    if (allowedDecisions?.includes(type) === false)
      return `decisions.${index}.type: Expected one of ${JSON.stringify(allowedDecisions)}`;
    const { name: editedName, args } = fieldsOf(editedAction);
    if (type === 'edit' && (typeof editedName !== 'string' || typeof args !== 'object' || args === null))
      return `decisions.${index}.editedAction: Expected an object with "name" and "args"`;
  }
  return undefined;
}

/**
 * Prepares a valid response for the agent. If one action is rejected, the middleware runs none of them and deletes the
 * approved ones from the model's message. If the approved actions are rejected too, with this reason, they stay in the
 * message.
 */
export function answerOf(request: unknown, response: unknown): unknown {
  if (!isApprovalRequest(request)) return response;
  const decisions = (fieldsOf(response).decisions as readonly unknown[]).map(fieldsOf);
  if (decisions.every(({ type }) => type !== 'reject')) return response;
  const rejection = { type: 'reject', message: 'The user declined another action, so this action was not run.' };
  const isKept = ({ type }: Fields, index: number): boolean =>
    type === 'reject' || allowedFor(request, index)?.includes('reject') === false;
  return { decisions: decisions.map((decision, index) => (isKept(decision, index) ? decision : rejection)) };
}

/** Treats a message as the response to a request: it rejects all actions, with the message as reason. */
export function answerByMessage(request: unknown, input: unknown): unknown {
  if (!isApprovalRequest(request)) return input;
  const texts = messagesOf(input).map(({ text }) => text);
  const message = `The user declined, and replied: ${texts.join('\n')}`;
  return { decisions: request.actionRequests.map(() => ({ type: 'reject', message })) };
}

function allowedFor({ actionRequests, reviewConfigs }: ApprovalRequest, index: number): readonly unknown[] | undefined {
  const { name } = actionRequests[index] ?? {};
  const { allowedDecisions } = reviewConfigs.find(({ actionName }) => actionName === name) ?? {};
  return Array.isArray(allowedDecisions) ? allowedDecisions : undefined;
}

function isApprovalRequest(value: unknown): value is ApprovalRequest {
  const { actionRequests, reviewConfigs } = fieldsOf(value);
  return Array.isArray(actionRequests) && Array.isArray(reviewConfigs);
}
