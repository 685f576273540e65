import { guard } from '../base/guard.ts';
import { replaceMethod, restoreMethods } from '../instrument/methods.ts';
import type { CallDescription, PlanOptions } from '../instrument/plan.ts';
import { tracedBy } from '../instrument/traceable.ts';
import type { Run } from '../run/run.ts';
import { preloadDelivery } from '../run/sink.ts';
import { modelAnswer, PartsFold, vectorsOf } from './ai-answer.ts';
import { describeEmbedding, describeGeneration, describeRanking } from './ai-model-call.ts';
import { watchedStream } from './ai-stream.ts';
import { usageOf } from './ai-usage.ts';
import { endWithAnswer } from './answer.ts';
import { AnswerReading } from './answer-reading.ts';
import { type Fields, fieldsOf } from './fields.ts';
import { tellUntraced } from './untraced.ts';

/** How one method of a model is traced. */
interface ModelMethod {
  readonly runType: string;
  describe(model: Fields, options: Fields): CallDescription;
  complete(run: Run, result: unknown): void;
}

const METHODS: Readonly<Record<string, ModelMethod>> = {
  doGenerate: { runType: 'llm', describe: describeGeneration, complete: completeGeneration },
  doStream: { runType: 'llm', describe: describeGeneration, complete: followGeneration },
  doEmbed: { runType: 'embedding', describe: describeEmbedding, complete: completeEmbedding },
  doRerank: { runType: 'retriever', describe: describeRanking, complete: (run, result) => run.end(rankingOf(result)) },
};

/**
 * Traces every call of a model of the AI SDK, whoever makes it: an agent, a framework, `generateText` itself. The model
 * is changed in place and given back; to do it again changes nothing. The functions of `wrapAISDK` do it with the
 * models that they are given. A language, embedding or reranking model; anything else is left alone, with one line that
 * says so.
 */
export function wrapModel<Model>(model: Model): Model {
  preloadDelivery();
  const isTraced = guard('wrapModel', () => patch(model));
  if (isTraced === false)
    tellUntraced('wrapModel(model)', 'a language, embedding or reranking model of the AI SDK', model);
  return model;
}

/** Undoes `wrapModel`: the model is as it was. */
export function unwrapModel<Model>(model: Model): Model {
  if (typeof model === 'object' && model !== null) restoreMethods('unwrapModel', model);
  return model;
}

/** The same without a word: false for what is no model. */
export function patch(model: unknown): boolean {
  // Models of images have a `doGenerate` too, which is a different one.
  if (typeof model !== 'object' || model === null || 'maxImagesPerCall' in model) return false;
  let isModel = false;
  for (const [key, method] of Object.entries(METHODS)) {
    if (typeof fieldsOf(model)[key] !== 'function') continue;
    replaceMethod('wrapModel', model, key, (original) => tracedBy(planOf(model as Fields, method), original));
    isModel = true;
  }
  return isModel;
}

function planOf(model: Fields, { runType, describe, complete }: ModelMethod): PlanOptions {
  return {
    name: runType,
    runType,
    isModelCall: true,
    describe: ([options]) => describe(model, fieldsOf(options)),
    complete,
  };
}

function completeGeneration(run: Run, result: unknown): void {
  const fold = new PartsFold(modelAnswer);
  endWithAnswer(run, () => {
    fold.addResult(result);
    return fold.answer();
  });
}

/** The result is handed on with the same stream, watched; the run ends when that does. */
function followGeneration(run: Run, result: unknown): void {
  const { stream } = fieldsOf(result);
  if (!(stream instanceof ReadableStream) || stream.locked) {
    run.end();
    return;
  }
  const reading = new AnswerReading(run, new PartsFold(modelAnswer));
  if (!Reflect.set(fieldsOf(result), 'stream', watchedStream(stream, reading))) run.end();
}

function completeEmbedding(run: Run, result: unknown): void {
  endWithAnswer(run, () => {
    const { embeddings, usage, providerMetadata } = fieldsOf(result);
    return { outputs: vectorsOf(embeddings), usage: usageOf(usage, providerMetadata) };
  });
}

function rankingOf(result: unknown): unknown {
  return { ranking: fieldsOf(result).ranking };
}
