import { guard } from '../../base/guard.ts';
import { replaceMethod, restoreMethods } from '../../instrument/methods.ts';
import type { PlanOptions } from '../../instrument/plan.ts';
import { observedStream } from '../../instrument/results/observed-stream.ts';
import { tracedBy } from '../../instrument/traceable.ts';
import { type Fields, fieldsOf } from '../../payload/fields.ts';
import type { RunType } from '../../run/record.ts';
import type { Run } from '../../run/run.ts';
import { preloadDelivery } from '../../run/sink.ts';
import { currentRun } from '../../run/start-run.ts';
import { aiSdkUsage } from '../../services/ai-sdk/usage.ts';
import { vectorsOf } from '../../services/answer.ts';
import { endWithAnswer } from '../answer-stream.ts';
import { warnUntraced } from '../warn-untraced.ts';
import { generatedAnswer } from './answer.ts';
import { describeModelCall } from './calls.ts';
import { ModelStream, openOperation } from './operation.ts';

interface ModelMethod {
  readonly runType: RunType;
  readonly modelType: string;
  complete(run: Run, result: unknown): void;
}

const METHODS: Readonly<Record<string, ModelMethod>> = {
  doGenerate: {
    runType: 'llm',
    modelType: 'chat',
    complete: (run, result) => endWithAnswer(run, () => generatedAnswer(result)),
  },
  doStream: { runType: 'llm', modelType: 'chat', complete: followGeneration },
  doEmbed: { runType: 'embedding', modelType: 'embedding', complete: completeEmbedding },
  doRerank: {
    runType: 'retriever',
    modelType: 'rerank',
    complete: (run, result) => run.end({ ranking: fieldsOf(result).ranking }),
  },
};

/**
 * Traces every call to an AI SDK language, embedding, reranking, image, speech or transcription model. Calls through
 * `generateText` or a framework are also traced. Changes the model in place and returns it. Wrapping a model again has
 * no effect. Functions from `wrapAISDK` wrap their models in the same way.
 *
 * If the value is not a model, `wrapModel` logs a warning and returns the value unchanged.
 */
export function wrapModel<Model>(model: Model): Model {
  preloadDelivery();
  const isTraced = guard('wrapModel', () => tryWrapModel(model));
  if (isTraced === false) warnUntraced('wrapModel(model)', 'a model of the AI SDK', model);
  return model;
}

/** Restores the model's original methods and returns the model. */
export function unwrapModel<Model>(model: Model): Model {
  if (typeof model === 'object' && model !== null) restoreMethods('unwrapModel', model);
  return model;
}

/** Like `wrapModel`, but returns false instead of logging a warning if the value is not a model. */
export function tryWrapModel(model: unknown): boolean {
  if (typeof model !== 'object' || model === null) return false;
  const methods = Object.entries(METHODS).filter(([key]) => typeof fieldsOf(model)[key] === 'function');
  for (const [key, method] of methods) {
    replaceMethod('wrapModel', model, key, (original) => tracedBy(planOf(model as Fields, method), original));
  }
  return methods.length > 0;
}

function planOf(model: Fields, { runType, modelType, complete }: ModelMethod): PlanOptions {
  return {
    name: runType,
    runType,
    source: 'wrapModel',
    describe: ([options]) => ({
      ...describeModelCall(model, modelType, fieldsOf(options)),
      hiding: openOperation(currentRun()).hiding,
    }),
    complete,
  };
}

/** Replaces the stream in the result with an observed stream. The run ends when that stream ends. */
function followGeneration(run: Run, result: unknown): void {
  const { stream } = fieldsOf(result);
  const isReadable = stream instanceof ReadableStream && !stream.locked;
  const observed = isReadable && observedStream(stream, new ModelStream(run));
  if (!observed || !Reflect.set(fieldsOf(result), 'stream', observed)) run.end();
}

export function completeEmbedding(run: Run, result: unknown): void {
  endWithAnswer(run, () => {
    const answer = fieldsOf(result);
    const { usage, providerMetadata } = answer;
    return { outputs: vectorsOf(answer), usage: aiSdkUsage(usage, providerMetadata) };
  });
}
