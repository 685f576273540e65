import {
  defined,
  emptyFields,
  type Fields,
  fieldsOf,
  firstText,
  isFields,
  listOf,
  numberOf,
  textOf,
} from '../../payload/fields.ts';
import { type Fold, objectReader, vectorsOf } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { copyOf, itemFor, saysNothing, update, updated } from '../deltas.ts';
import { geminiMessages } from './messages.ts';
import { geminiUsage } from './usage.ts';

export const geminiGeneration: CallReader = callReader(
  'gemini.generateContent',
  {
    modelType: 'chat',
    inputKeys: ['contents', 'systemInstruction', 'system_instruction'],
    inputs: requestMessages,
    settings: ['generationConfig', 'generation_config'],
  },
  objectReader(
    ['candidates', 'promptFeedback', 'usageMetadata'],
    ({ candidates, usageMetadata, modelVersion, ...rest }) => {
      const messages = listOf(candidates).flatMap((candidate) => {
        const { content, finishReason, index: _, ...others } = fieldsOf(candidate);
        const [message] = geminiMessages({ role: 'model', ...fieldsOf(content) });
        return [defined({ role: 'assistant', ...message, finish_reason: finishReason, ...others })];
      });
      return { outputs: { messages, ...rest }, model: textOf(modelVersion), usage: geminiUsage(usageMetadata) };
    },
    contentFold,
  ),
);

export const geminiEmbedding: CallReader = callReader(
  'gemini.embedContent',
  {
    modelType: 'embedding',
    inputKeys: ['content', 'requests'],
    inputs: ({ content, requests }) => ({
      input: [content, ...listOf(requests).map((request) => fieldsOf(request).content)]
        .filter((one) => one !== undefined)
        .map((one) => geminiMessages(one)[0]?.content),
    }),
  },
  objectReader(['embedding', 'embeddings'], (answer) => ({
    outputs: vectorsOf(answer),
    usage: geminiUsage(answer.usageMetadata),
  })),
);

function requestMessages({ contents, systemInstruction, system_instruction }: Fields): Fields {
  const [system] = geminiMessages(systemInstruction ?? system_instruction);
  const given = (Array.isArray(contents) ? contents : [contents]).flatMap(geminiMessages);
  return { messages: system === undefined ? given : [{ ...system, role: 'system' }, ...given] };
}

/** Combines the chunks of a response. Each chunk contains more parts. */
function contentFold(): Fold {
  const answer = emptyFields();
  const candidates: unknown[] = [];
  const addCandidate = (candidate: Fields, at: number, isFull: boolean): number => {
    const { index: given, content, ...rest } = candidate;
    const known = itemFor(candidates, { index: numberOf(given) ?? at });
    known.content ??= { role: 'model', parts: [] };
    update(known, rest);
    const { parts } = known.content as { parts: Fields[] };
    let characters = 0;
    for (const part of listOf(fieldsOf(content).parts).map(fieldsOf)) {
      characters += textOf(part.text)?.length ?? JSON.stringify(part).length;
      if (!isFull) addPart(parts, part);
    }
    return characters;
  };
  return {
    add(chunk, isFull) {
      const { candidates: added, ...rest } = fieldsOf(chunk);
      update(answer, rest);
      const counts = listOf(added).map((candidate, at) => addCandidate(fieldsOf(candidate), at, isFull));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    result: () => ({ ...answer, candidates }),
  };
}

/** Adds a part. Text continues the text before it. A function call without a name continues the call before it. */
function addPart(parts: Fields[], part: Fields): void {
  const { text, thought, functionCall, ...others } = part;
  const last = fieldsOf(parts.at(-1));
  if (isFields(functionCall)) {
    const { partialArgs, willContinue: _, ...call } = functionCall;
    const open = firstText(call.name) ? undefined : parts.findLast((one) => isFields(one.functionCall));
    const target = open ?? emptyFields();
    if (open === undefined) parts.push(target);
    update(target, { ...others, functionCall: call });
    for (const argument of listOf(partialArgs)) addArgument(target.functionCall as Fields, fieldsOf(argument));
  } else if (typeof text === 'string' && typeof last.text === 'string' && !last.thought === !thought) {
    last.text += text;
    update(last, others);
  } else if (firstText(text) !== undefined || !Object.values(others).every(saysNothing)) {
    parts.push(copyOf(part));
  }
}

/**
 * Adds a streamed argument to a call. Its `jsonPath` is, for example, `$.cities[0].name`:
 * https://docs.cloud.google.com/dotnet/docs/reference/Google.Cloud.AIPlatform.V1/latest/Google.Cloud.AIPlatform.V1.PartialArg
 */
function addArgument(call: Fields, { jsonPath, stringValue, numberValue, boolValue }: Fields): void {
  const steps = `${jsonPath}`.matchAll(/\[(\d{1,4})\]|\['([^']{0,256})'\]|\["([^"]{0,256})"\]|([^.[\]$]+)/g);
  const path = ['args', ...[...steps].map(([, ...forms]) => forms.find((step) => step !== undefined) ?? '')];
  let key = path.pop() as string;
  let owner = call;
  for (const [at, step] of path.entries()) {
    const isList = /^\d+$/.test(path[at + 1] ?? key);
    owner[step] ??= isList ? [] : emptyFields();
    const next = owner[step];
    if (isList ? !Array.isArray(next) : !isFields(next)) {
      // The path contradicts an earlier one.
      [owner, key] = [call, `${jsonPath}`];
      break;
    }
    owner = next as Fields;
  }
  const isText = typeof stringValue === 'string';
  const value = isText ? (textOf(owner[key]) ?? '') + stringValue : (numberValue ?? boolValue ?? null);
  owner[key] = updated(owner[key], value);
}
