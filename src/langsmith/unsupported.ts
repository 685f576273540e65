import { RunspanError } from '../base/errors.ts';

/**
 * A LangSmith function that `runspan/langsmith` does not support. Calling the function throws a RunspanError with the
 * code `RUNSPAN_UNSUPPORTED`. The error message names an alternative.
 */
export type Unsupported = (...args: unknown[]) => never;

export const EVALUATION = 'keep `langsmith` for evaluations; the functions that they call may be traced with `runspan`';
export const PLATFORM = 'keep `langsmith` for this part of the platform';

/** Methods of LangSmith's client that `Client` does not support, grouped by alternative. */
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

/**
 * Properties of LangSmith's client that `Client` does not support, grouped by alternative. Each property contains
 * methods.
 */
const PROPERTIES: Readonly<Record<string, string>> = {
  [PLATFORM]: `agents annotationQueues fleet info issues onlineEvaluators productFeedback promptWebhooks public runs
    sandboxes sessions sql threads traces`,
  [EVALUATION]: 'datasets evaluators',
};

/** Defines unsupported methods that throw when called, and unsupported properties that throw when read. */
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

/** Returns a function that throws an error when called, with or without `new`. */
export function unsupported(name: string, alternative: string): Unsupported {
  return function unsupportedFunction(): never {
    throw new RunspanError('RUNSPAN_UNSUPPORTED', `runspan/langsmith has no \`${name}\`: ${alternative}.`);
  };
}
