export { ApiError, type CallFacts, ConnectionError, InvalidAnswerError, TimeoutError } from './clients/api-error.ts';
export type {
  CallOptions,
  ClientHooks,
  ClientOptions,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
} from './clients/client-options.ts';
export {
  type FeedbackSubmission,
  feedbackLink,
  type SubmitFeedbackOptions,
  submitFeedback,
} from './clients/feedback.ts';
export { FeedbackError, type FeedbackRefusal } from './clients/feedback-error.ts';
export {
  createFeedbackToken,
  createFeedbackTokens,
  type FeedbackServiceOptions,
  type FeedbackToken,
  type FeedbackTokenRequest,
} from './clients/feedback-token.ts';
export type { Page, PageList } from './clients/page.ts';
export { InvalidRequestError, type ValidationError } from './clients/validation-error.ts';
