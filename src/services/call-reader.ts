import type { AnswerReader } from './answer.ts';
import { describeRequest, type RequestDescription, type RequestFields } from './request.ts';

/** Reads one kind of model request and its response, for example a chat completion. */
export interface CallReader extends AnswerReader {
  readonly name: string;
  readonly runType: 'llm' | 'embedding';
  /** Describes a request. Returns undefined if the request must not be recorded. */
  describe(body: unknown, provider: string): RequestDescription | undefined;
}

/** Returns a reader of one kind of request and its response. */
export function callReader(name: string, fields: RequestFields, answer: AnswerReader): CallReader {
  return {
    ...answer,
    name,
    runType: fields.modelType === 'embedding' ? 'embedding' : 'llm',
    describe: (body, provider) => describeRequest(body, provider, fields),
  };
}
