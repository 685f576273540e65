import { geminiMessages } from '../../messages/gemini.ts';
import { defined, emptyFields, type Fields, fieldsOf, listOf, textOf } from '../../payload/fields.ts';
import { geminiUsage } from '../../services/gemini.ts';
import { laterUsage } from '../../services/usage.ts';
import { type CallReader, describeRequest, errorLine, type Fold, objectReader } from '../call-reader.ts';
import { copyOf } from '../deltas.ts';
import { dimensionsOf } from '../openai/answers.ts';

export const geminiGeneration: CallReader = {
  name: 'gemini.generateContent',
  runType: 'llm',
  describe: (body, provider) =>
    describeRequest(withParameters(fieldsOf(body)), provider, {
      modelType: 'chat',
      inputKeys: ['contents', 'systemInstruction', 'system_instruction'],
      inputs: requestMessages,
    }),
  ...objectReader(
    ['candidates', 'promptFeedback', 'usageMetadata'],
    (answer) => {
      const { candidates, usageMetadata, modelVersion, ...rest } = answer;
      const messages = listOf(candidates).flatMap((candidate) => {
        const { content, finishReason, index: _, ...others } = fieldsOf(candidate);
        const [message] = geminiMessages({ role: 'model', ...fieldsOf(content) });
        return [defined({ role: 'assistant', ...message, finish_reason: finishReason, ...others })];
      });
      const { status, message } = fieldsOf(rest.error);
      return {
        outputs: { messages, ...rest },
        model: textOf(modelVersion),
        usage: geminiUsage(usageMetadata),
        error: errorLine(status, message),
      };
    },
    contentFold,
  ),
};

export const geminiEmbedding: CallReader = {
  name: 'gemini.embedContent',
  runType: 'embedding',
  describe: (body, provider) =>
    describeRequest(body, provider, {
      modelType: 'embedding',
      inputKeys: ['content', 'requests'],
      inputs: ({ content, requests }) => ({
        input: [content, ...listOf(requests).map((request) => fieldsOf(request).content)]
          .filter((one) => one !== undefined)
          .map((one) => geminiMessages(one)[0]?.content),
      }),
    }),
  ...objectReader(['embedding', 'embeddings'], ({ embedding, embeddings, usageMetadata }) => {
    const vectors = listOf(embeddings ?? (embedding && [embedding]));
    return {
      outputs: { count: vectors.length, dimensions: dimensionsOf(fieldsOf(vectors[0]).values) },
      usage: geminiUsage(usageMetadata),
    };
  }),
};

/** Renames the generation settings to the names that other services use. */
function withParameters({ generationConfig, generation_config, ...body }: Fields): Fields {
  const config = fieldsOf(generationConfig ?? generation_config);
  const { maxOutputTokens, stopSequences, ...others } = config;
  return defined({ ...body, ...others, max_output_tokens: maxOutputTokens, stop_sequences: stopSequences });
}

function requestMessages({ contents, systemInstruction, system_instruction }: Fields): Fields {
  const [system] = geminiMessages(systemInstruction ?? system_instruction);
  const given = (Array.isArray(contents) ? contents : [contents]).flatMap(geminiMessages);
  return { messages: system === undefined ? given : [{ ...system, role: 'system' }, ...given] };
}

/** Combines the chunks of a response. Each chunk contains more parts. */
function contentFold(): Fold {
  const answer = emptyFields();
  const candidates: Fields[] = [];
  const addCandidate = (candidate: Fields, at: number, isFull: boolean): number => {
    const { index = at, content, ...rest } = candidate;
    let known = candidates.find((one) => one.index === index);
    if (known === undefined) {
      known = { index, content: { role: 'model', parts: [] } };
      candidates.push(known);
    }
    Object.assign(known, copyOf(rest));
    const { parts } = known.content as { parts: Fields[] };
    let characters = 0;
    for (const part of listOf(fieldsOf(content).parts).map(fieldsOf)) {
      const text = textOf(part.text);
      const last = parts.at(-1);
      characters += text?.length ?? JSON.stringify(part).length;
      if (isFull || text === '') continue;
      if (text !== undefined && textOf(last?.text) !== undefined && last?.thought === part.thought) {
        (last as Fields).text += text;
      } else {
        parts.push(copyOf(part));
      }
    }
    return characters;
  };
  return {
    add(chunk, isFull) {
      const { candidates: added, usageMetadata, ...rest } = fieldsOf(chunk);
      Object.assign(answer, copyOf(rest));
      if (usageMetadata !== undefined) answer.usageMetadata = laterUsage(answer.usageMetadata, copyOf(usageMetadata));
      const counts = listOf(added).map((candidate, at) => addCandidate(fieldsOf(candidate), at, isFull));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    result: () => ({ ...answer, candidates }),
  };
}
