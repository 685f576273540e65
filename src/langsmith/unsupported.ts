import { RunspanError } from '../base/errors.ts';

export type Unsupported = (...args: unknown[]) => never;

const EVALUATION = 'keep `langsmith` for evaluations; the functions that they call may be traced with `runspan`';
const TESTS = 'use `recordRuns` of `runspan/testing`';
const OTEL = 'use `RunSpanProcessor` or `RunSpanExporter` of `runspan/otel`';
const LANGCHAIN = 'use `RunspanCallbackHandler` of `runspan/langchain`';
const REDACTION = 'use `redact` of `runspan`';
const ERRORS = 'use `RunspanError` of `runspan` and its `code`';
const PLATFORM = 'keep `langsmith` for this part of the platform';
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

export const getLangchainCallbacks: Unsupported = unsupported('getLangchainCallbacks', LANGCHAIN);
export const RunnableTraceable: Unsupported = unsupported('RunnableTraceable', 'use `RunnableLambda` of LangChain');

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

/** Also exported under the names of the other error classes. `instanceof` returns false. */
export const LangsmithError: Unsupported = unsupported('LangsmithError', ERRORS);

/** Methods of LangSmith's client that `Client` does not have, by their alternative. */
const METHODS: Readonly<Record<string, string>> = {
  [PLATFORM]: `readRun listRuns listGroupRuns readThread listThreads getRunStats getRunUrl shareRun unshareRun
    readRunSharedLink listSharedRuns createProject updateProject hasProject readProject getProjectUrl getDatasetUrl
    listProjects deleteProject listAnnotationQueues createAnnotationQueue readAnnotationQueue updateAnnotationQueue
    deleteAnnotationQueue addRunsToAnnotationQueue getRunFromAnnotationQueue promptExists likePrompt unlikePrompt
    listCommits listPrompts getPrompt createPrompt createCommit updatePrompt deletePrompt pullPromptCommit pushPrompt
    _pullPrompt pullAgent pushAgent agentExists deleteAgent listAgents pullSkill pushSkill skillExists deleteSkill
    listSkills getHostUrl readFeedback updateFeedback deleteFeedback listFeedback listPresignedFeedbackTokens
    createFeedbackConfig listFeedbackConfigs updateFeedbackConfig deleteFeedbackConfig addFeedbackCategories
    removeFeedbackCategories listRunsFromAnnotationQueue deleteRunFromAnnotationQueue getSizeFromAnnotationQueue`,
  [EVALUATION]: `uploadCsv createDataset readDataset hasDataset diffDatasetVersions listDatasets updateDataset
    deleteDataset shareDataset unshareDataset clonePublicDataset createExample createExamples createLLMExample
    createChatExample readExample listExamples deleteExample deleteExamples updateExample updateExamples
    listDatasetSplits updateDatasetSplits updateDatasetTag readDatasetVersion readDatasetOpenaiFinetuning
    readDatasetSharedSchema readSharedDataset listSharedExamples updateExamplesMultipart uploadExamplesMultipart
    createComparativeExperiment evaluateRun logEvaluationFeedback`,
  'use `createFeedbackToken` of `runspan/clients`': 'createPresignedFeedbackToken',
  'use `createRun`': 'batchIngestRuns multipartIngestRuns',
};

/** Properties of LangSmith's client that contain methods and that `Client` does not have, by their alternative. */
const PROPERTIES: Readonly<Record<string, string>> = {
  [PLATFORM]: `agents annotationQueues fleet info issues onlineEvaluators productFeedback promptWebhooks public runs
    sandboxes sessions sql threads traces`,
  [EVALUATION]: 'datasets evaluators',
};

/** Defines the unsupported methods, which throw when called, and the unsupported properties, which throw when read. */
export function unsupportedMembers(prototype: object): void {
  for (const [alternative, names] of Object.entries(METHODS)) {
    for (const name of names.split(/\s+/)) {
      Object.defineProperty(prototype, name, {
        configurable: true,
        writable: true,
        value: unsupported(`Client.${name}`, alternative),
      });
    }
  }
  for (const [alternative, names] of Object.entries(PROPERTIES)) {
    for (const name of names.split(/\s+/)) {
      Object.defineProperty(prototype, name, { configurable: true, get: unsupported(`Client.${name}`, alternative) });
    }
  }
}

/** Returns a function that throws when it is called, also with `new`. */
export function unsupported(name: string, alternative: string): Unsupported {
  return function unsupportedFunction(): never {
    throw new RunspanError('RUNSPAN_UNSUPPORTED', `runspan/langsmith has no \`${name}\`: ${alternative}.`);
  };
}
