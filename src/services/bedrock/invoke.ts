import {
  defined,
  emptyFields,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  mapped,
  parsedJson,
  textOf,
} from '../../payload/fields.ts';
import { type Fold, vectorsOf } from '../answer.ts';
import { messageCall } from '../anthropic/calls.ts';
import type { CallReader } from '../call-reader.ts';
import { addDelta } from '../deltas.ts';
import { dataUriOf } from '../media.ts';
import { openaiCalls } from '../openai/calls.ts';
import { describeRequest, requestFields } from '../request.ts';
import { type BedrockCall, converseCall } from './converse.ts';
import { invocationUsage } from './usage.ts';

/** The key of the token counts that Bedrock adds to the last chunk of each streamed response. */
const METRICS = 'amazon-bedrock-invocationMetrics';

/**
 * Returns the reader of a call of `InvokeModel` or `InvokeModelWithResponseStream`. The format of the bodies is that of
 * the model's provider.
 */
export function invocation({ modelId, body }: Fields): BedrockCall {
  const request = fieldsOf(jsonOf(body));
  const { runType, describe, read, fold } = formatOf(textOf(modelId) ?? '', request);
  return {
    name: 'bedrock.invokeModel',
    runType,
    describe: (_, provider) => describe({ ...request, model: modelId }, provider),
    answerOf: ({ output, response }) => ({
      ...fieldsOf(jsonOf(fieldsOf(output).body)),
      [METRICS]: countsIn(fieldsOf(fieldsOf(response).headers)),
    }),
    read(fields) {
      const { [METRICS]: metrics, ...given } = fieldsOf(fields);
      const answer = read(given);
      return { ...answer, usage: answer.usage ?? invocationUsage(metrics) };
    },
    fold: fold && (() => chunkFold(fold())),
  };
}

function jsonOf(body: unknown): unknown {
  return parsedJson(typeof body === 'string' ? body : new TextDecoder().decode(body as Uint8Array));
}

function countsIn(headers: Fields): Fields {
  const count = (name: string): number => Number(headers[`x-amzn-bedrock-${name}-token-count`]);
  return { inputTokenCount: count('input'), outputTokenCount: count('output') };
}

/** Reads the JSON in the chunks of a response. The other members are those of `fold`. */
function chunkFold(fold: Fold): Fold {
  return Object.assign(Object.create(fold) as Fold, {
    add(event: unknown, isFull: boolean): number {
      const { bytes } = fieldsOf(fieldsOf(event).chunk);
      return bytes === undefined ? 0 : fold.add(jsonOf(bytes), isFull);
    },
  });
}

/** Returns the reader of a format. A model id can be an ARN that does not contain the model's name. */
function formatOf(modelId: string, { anthropic_version, messages }: Fields): CallReader {
  if (/embed/.test(modelId)) return embeddingCall;
  if (anthropic_version !== undefined) return messageCall;
  if (!Array.isArray(messages)) return completionCall;
  const [block] = listOf(fieldsOf(messages[0]).content);
  return isFields(block) && block.type === undefined ? converseCall : openaiCalls.chat;
}

/** Parameters in the formats that `otherCall` reads. Any other field is recorded as an input. */
const PARAMETERS: ReadonlySet<string> = new Set([
  ...['model', 'temperature', 'topP', 'top_p', 'top_k', 'max_tokens', 'stop_sequences', 'imageGenerationConfig'],
  ...['dimensions', 'normalize', 'embeddingTypes', 'embedding_types', 'input_type'],
]);

/** Reads the formats of Meta Llama and Amazon Titan. Other formats are recorded unchanged. */
const completionCall: CallReader = {
  ...otherCall('llm', ({ outputText, generation = outputText, images, ...rest }) => {
    const shown = mapped(images, (image) => dataUriOf('image/png', image) ?? image);
    return defined({ text: generation, images: shown, ...rest });
  }),
  fold() {
    const answer = emptyFields();
    return {
      add: (chunk, isFull) => addDelta(isFull ? emptyFields() : answer, fieldsOf(chunk)),
      result: () => answer,
    };
  },
};

const embeddingCall: CallReader = otherCall('embedding', vectorsOf);

function otherCall(modelType: 'llm' | 'embedding', outputsOf: (answer: Fields) => Fields): CallReader {
  return {
    name: modelType,
    runType: modelType,
    describe(body, provider) {
      const given = requestFields(body, ['textGenerationConfig']);
      const inputKeys = Object.keys(given).filter((key) => !PARAMETERS.has(key));
      return describeRequest(given, provider, { modelType, inputKeys });
    },
    read(response) {
      const { results, ...rest } = fieldsOf(response);
      // Titan's streamed responses contain no list of results.
      const answer = { ...rest, ...fieldsOf(listOf(results)[0]) };
      return { outputs: outputsOf(answer), usage: invocationUsage(answer) };
    },
  };
}
