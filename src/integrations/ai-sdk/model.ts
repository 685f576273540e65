import { shared } from '../../base/shared.ts';
import { replaceMethod, restoreMethods } from '../../instrument/methods.ts';
import type { PlanOptions } from '../../instrument/plan.ts';
import { observedStream } from '../../instrument/results/observed-stream.ts';
import { tracedBy } from '../../instrument/traceable.ts';
import { type Fields, fieldsOf } from '../../payload/fields.ts';
import type { RunType } from '../../run/record.ts';
import type { Run } from '../../run/run.ts';
import type { CallOptions, WrapOptions } from '../../run/run-options.ts';
import { currentRun } from '../../run/start-run.ts';
import { aiSdkUsage } from '../../services/ai-sdk/usage.ts';
import { vectorsOf } from '../../services/answer.ts';
import { endWithAnswer } from '../answer-stream.ts';
import { wrap } from '../wrap.ts';
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
 * Traces a model of the AI SDK in place and returns it. The model is a language, embedding, reranking, image, speech or
 * transcription model. Each call becomes a run, also calls through `generateText` or a framework. Wrapping a model again
 * has no effect. To change the options, call `unwrapModel` first. Functions from `wrapAISDK` wrap their models in the same
 * way, without options, until `wrapModel` is called.
 *
 * If the value is not a model, `wrapModel` logs a warning and returns the value unchanged.
 */
export function wrapModel<Model>(model: Model, options?: WrapOptions): Model {
  return wrap('wrapModel', 'a model of the AI SDK', model, options, (checked) => tryWrapModel(model, checked) && model);
}

/** Restores the original methods of a wrapped model and returns the model. Open runs still end normally. */
export function unwrapModel<Model>(model: Model): Model {
  if (typeof model !== 'object' || model === null) return model;
  traced.delete(model);
  restoreMethods('unwrapModel', model);
  return model;
}

/** The traced models, and whether `wrapModel` has traced them. */
const traced: WeakMap<object, boolean> = shared('aiModels', () => new WeakMap());

/**
 * Like `wrapModel`, but returns false instead of logging a warning if the value is not a model. Without `options`, it is
 * called for a model of a traced function.
 */
export function tryWrapModel(model: unknown, options?: CallOptions): boolean {
  if (typeof model !== 'object' || model === null) return false;
  if (options !== undefined && traced.get(model) === false) unwrapModel(model);
  if (!traced.has(model)) traced.set(model, options !== undefined);
  const methods = Object.entries(METHODS).filter(([key]) => typeof fieldsOf(model)[key] === 'function');
  for (const [key, method] of methods) {
    replaceMethod('wrapModel', model, key, (original) => tracedBy(planOf(model as Fields, method, options), original));
  }
  return methods.length > 0;
}

function planOf(model: Fields, { runType, modelType, complete }: ModelMethod, options: CallOptions = {}): PlanOptions {
  return {
    ...options,
    name: runType,
    runType,
    source: 'wrapModel',
    describe([given]) {
      const description = describeModelCall(model, modelType, fieldsOf(given));
      const { hiding } = openOperation(currentRun());
      return { ...description, name: options.name ?? description.name ?? runType, hiding };
    },
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
