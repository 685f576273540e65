import { EVALUATION, PLATFORM, type Unsupported, unsupported } from './unsupported.ts';

// LangSmith functions that are not supported. They are exported to throw an error that names an alternative.

const TESTS = 'use `recordRuns` of `runspan/testing`';
const OTEL = 'use `RunSpanProcessor` or `RunSpanExporter` of `runspan/otel`';
const REDACTION = 'use `redact` of `runspan`';
const ERRORS = 'use `RunspanError` of `runspan` and its `code`';
const TRANSPORT = 'use `dispatcher` of `configure`';
const VERCEL = 'use `wrapAISDK`';

export const evaluate: Unsupported = unsupported('evaluate', EVALUATION);
export const evaluateComparative: Unsupported = unsupported('evaluateComparative', EVALUATION);
export const StringEvaluator: Unsupported = unsupported('StringEvaluator', EVALUATION);

export const describe: Unsupported = unsupported('describe', TESTS);
export const it: Unsupported = unsupported('it', TESTS);
export const test: Unsupported = unsupported('test', TESTS);
export const expect: Unsupported = unsupported('expect', TESTS);
export const logFeedback: Unsupported = unsupported('logFeedback', TESTS);
export const logOutputs: Unsupported = unsupported('logOutputs', TESTS);
export const wrapEvaluator: Unsupported = unsupported('wrapEvaluator', TESTS);
export const wrapVitest: Unsupported = unsupported('wrapVitest', TESTS);

export const initializeOTEL: Unsupported = unsupported('initializeOTEL', OTEL);
export const LangSmithOTLPTraceExporter: Unsupported = unsupported('LangSmithOTLPTraceExporter', OTEL);
export const LangSmithOTLPSpanProcessor: Unsupported = unsupported('LangSmithOTLPSpanProcessor', OTEL);

export const isTraceableSpan: Unsupported = unsupported('isTraceableSpan', OTEL);

export const createAnonymizer: Unsupported = unsupported('createAnonymizer', REDACTION);
export const createSecretAnonymizer: Unsupported = unsupported('createSecretAnonymizer', REDACTION);

export const wrapAnthropic: Unsupported = unsupported('wrapAnthropic', 'use `wrapAnthropic` of `runspan/anthropic`');
export const createUsageMetadata: Unsupported = unsupported('createUsageMetadata', 'use `run.set({ usage })`');
export const wrapGemini: Unsupported = unsupported('wrapGemini', 'use `wrapSDK`');
export const wrapClaudeAgentSDK: Unsupported = unsupported('wrapClaudeAgentSDK', 'use `wrapSDK`');
export const OpenAIAgentsTracingProcessor: Unsupported = unsupported(
  'OpenAIAgentsTracingProcessor',
  'use `wrapOpenAI`',
);
export const LangSmithTelemetry: Unsupported = unsupported('LangSmithTelemetry', VERCEL);
export const convertMessageToTracedFormat: Unsupported = unsupported('convertMessageToTracedFormat', VERCEL);

export const overrideFetchImplementation: Unsupported = unsupported('overrideFetchImplementation', TRANSPORT);
export const convertToDottedOrderFormat: Unsupported = unsupported('convertToDottedOrderFormat', 'use `dotted_order`');
export const computeRunIdForSecondaryReplica: Unsupported = unsupported(
  'computeRunIdForSecondaryReplica',
  'use `createExporter` of `runspan`',
);

export const Cache: Unsupported = unsupported('Cache', PLATFORM);
export const PromptCache: Unsupported = unsupported('PromptCache', PLATFORM);
export const configureGlobalPromptCache: Unsupported = unsupported('configureGlobalPromptCache', PLATFORM);
export const SandboxClient: Unsupported = unsupported('SandboxClient', PLATFORM);

/**
 * LangSmith's base error class, also exported under the names of the other error classes. An `instanceof` check with
 * this class always returns false.
 */
export const LangsmithError: Unsupported = unsupported('LangsmithError', ERRORS);
export {
  LangsmithError as APIConnectionError,
  LangsmithError as APIConnectionTimeoutError,
  LangsmithError as APIError,
  LangsmithError as APIUserAbortError,
  LangsmithError as AuthenticationError,
  LangsmithError as BadRequestError,
  LangsmithError as ConflictError,
  LangsmithError as InternalServerError,
  LangsmithError as NotFoundError,
  LangsmithError as PermissionDeniedError,
  LangsmithError as RateLimitError,
  LangsmithError as UnprocessableEntityError,
};
