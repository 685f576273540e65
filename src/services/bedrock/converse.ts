import { toBase64, viewOf } from '../../payload/describe.ts';
import {
  defined,
  emptyFields,
  type Fields,
  fieldsOf,
  firstText,
  isFields,
  mapped,
  parsedJson,
  textOf,
  without,
} from '../../payload/fields.ts';
import { type Fold, objectReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { addDelta, itemFor, update, withoutIndex } from '../deltas.ts';
import { dataUriOf, withField } from '../media.ts';
import { declaredType } from '../media-type.ts';
import { withSystem } from '../request.ts';
import { bedrockUsage } from './usage.ts';

/** Reads one kind of call of the client. */
export interface BedrockCall extends CallReader {
  /** Returns the answer in the client's result, in the form that `read` takes. */
  answerOf(result: Fields): unknown;
}

/** Fields of an output that are not part of the response. */
const CLIENT_FIELDS: ReadonlySet<string> = new Set(['$metadata']);

export function conversation(): BedrockCall {
  return { ...converseCall, answerOf: ({ output }) => without(fieldsOf(output), CLIENT_FIELDS) };
}

/** Reads calls of `Converse` and `ConverseStream`. Requests and responses of Amazon Nova have the same format. */
export const converseCall: CallReader = callReader(
  'bedrock.converse',
  {
    modelType: 'chat',
    inputKeys: ['messages', 'system', 'promptVariables'],
    inputs: ({ messages, system, promptVariables }) =>
      defined({ messages: withSystem(system, mapped(messages, withMedia)), promptVariables }),
    settings: ['inferenceConfig', 'toolConfig'],
  },
  objectReader(
    ['output'],
    (answer) => ({
      model: textOf(fieldsOf(fieldsOf(answer.trace).promptRouter).invokedModelId),
      usage: bedrockUsage(answer.usage, fieldsOf(answer.serviceTier).type),
    }),
    converseFold,
  ),
);

/** Adds the MIME type to the media in a message, which then become attachments. */
function withMedia(message: unknown): unknown {
  const content = mapped(fieldsOf(message).content, (block) => {
    const [[kind, media] = []] = Object.entries(fieldsOf(block));
    const { bytes } = fieldsOf(fieldsOf(media).source);
    if (kind === undefined || bytes === undefined) return block;
    // Requests in JSON already contain base64 text.
    const base64 = ArrayBuffer.isView(bytes) ? toBase64(viewOf(bytes)) : bytes;
    const uri = dataUriOf(declaredType(kind, fieldsOf(media)), base64);
    return { [kind]: { ...fieldsOf(media), source: { bytes: uri ?? base64 } } };
  });
  return withField(message, 'content', content);
}

function converseFold(): Fold {
  const answer = emptyFields();
  const blocks: unknown[] = [];
  let role: string | undefined;
  return {
    add(event, isFull) {
      const { messageStart, contentBlockStart, contentBlockDelta, messageStop, metadata } = fieldsOf(event);
      role ??= firstText(fieldsOf(messageStart).role);
      update(answer, messageStop);
      update(answer, metadata);
      const { contentBlockIndex: index, start, delta } = fieldsOf(contentBlockStart ?? contentBlockDelta);
      if (!isFields(start) && !isFields(delta)) return 0;
      const block = itemFor(blocks, { ...fieldsOf(start), index });
      update(block, start);
      return isFields(delta) ? addDelta(isFull ? emptyFields() : block, extensionOf(delta)) : 0;
    },
    result() {
      if (role === undefined && blocks.length === 0) return undefined;
      const content = withoutIndex(blocks).map((block) => withInput(fieldsOf(block)));
      return { output: { message: defined({ role, content }) }, ...answer };
    },
  };
}

function extensionOf({ citation, reasoningContent, toolResult, ...others }: Fields): Fields {
  const isHidden = fieldsOf(reasoningContent).redactedContent !== undefined;
  return defined({
    ...others,
    citations: citation && [citation],
    reasoningContent: reasoningContent && (isHidden ? reasoningContent : { reasoningText: reasoningContent }),
    toolResult: toolResult && { content: toolResult },
  });
}

function withInput(block: Fields): Fields {
  const { toolUse } = block;
  if (!isFields(toolUse)) return block;
  return { ...block, toolUse: { ...toolUse, input: parsedJson(textOf(toolUse.input) || '{}') } };
}
