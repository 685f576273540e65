import type { AnswerReader } from './answer.ts';
import { describeRequest, type RequestDescription, type RequestFields } from './request.ts';

/** Reads one kind of model request and its response, for example a chat completion. */
export interface CallReader extends AnswerReader {
  readonly name: string;
  readonly runType: 'llm' | 'embedding' | 'retriever';
  /** Describes a request. Returns undefined if the request must not be recorded. */
  describe(body: unknown, provider: string): RequestDescription | undefined;
}

const RUN_TYPES = { chat: 'llm', llm: 'llm', embedding: 'embedding', rerank: 'retriever' } as const;

export function callReader(name: string, fields: RequestFields, answer: AnswerReader): CallReader {
  return {
    ...answer,
    name,
    runType: RUN_TYPES[fields.modelType],
    describe: (body, provider) => describeRequest(body, provider, fields),
  };
}
