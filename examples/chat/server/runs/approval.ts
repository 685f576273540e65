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
  const { actionRequests, reviewConfigs } = request;
  if (!Array.isArray(decisions) || decisions.length !== actionRequests.length)
    return `Expected a response with "decisions", a list of ${actionRequests.length}, one for each action`;
  for (const [index, decision] of decisions.entries()) {
    const { type, editedAction } = fieldsOf(decision);
    const { name } = actionRequests[index] ?? {};
    const { allowedDecisions } = reviewConfigs.find(({ actionName }) => actionName === name) ?? {};
    if (Array.isArray(allowedDecisions) && !allowedDecisions.includes(type))
      return `decisions.${index}.type: Expected one of ${JSON.stringify(allowedDecisions)}`;
    const { name: editedName, args } = fieldsOf(editedAction);
    if (type === 'edit' && (typeof editedName !== 'string' || typeof args !== 'object' || args === null))
      return `decisions.${index}.editedAction: Expected an object with "name" and "args"`;
  }
  return undefined;
}

/** Converts a message to a response to a request. The response rejects all actions, with the message as the reason. */
export function answerByMessage(request: unknown, input: unknown): unknown {
  if (!isApprovalRequest(request)) return input;
  const texts = messagesOf(input).map(({ text }) => text);
  const message = `The user declined, and replied: ${texts.join('\n')}`;
  return { decisions: request.actionRequests.map(() => ({ type: 'reject', message })) };
}

function isApprovalRequest(value: unknown): value is ApprovalRequest {
  const { actionRequests, reviewConfigs } = fieldsOf(value);
  return Array.isArray(actionRequests) && Array.isArray(reviewConfigs);
}
