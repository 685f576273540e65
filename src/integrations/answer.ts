import { guard } from '../base/guard.ts';
import type { UsageMetadata } from '../run/record.ts';
import type { Run } from '../run/run.ts';
import { type Fields, isFields, textOf } from './fields.ts';

/** What is recorded of the answer of a model. */
export interface Answer {
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly usage?: UsageMetadata | undefined;
  /** The model that answered, which may be a version of the one that was asked for. */
  readonly model?: string | undefined;
  /** What went wrong, where the service tells it in an answer that is no error to its SDK. */
  readonly error?: unknown;
}

/** How the answers to one kind of call are read. Answers belong to the application: reading leaves them as they are. */
export interface AnswerReader {
  read(value: unknown): Answer;
  /** For answers that may come in chunks: puts them together, so that they read as if they had come at once. */
  readonly fold?: () => Fold;
}

/** Puts an answer together from its chunks. It keeps copies, never parts of a chunk. */
export interface Fold {
  /** Characters of text that have come so far, kept or not. */
  readonly characters: number;
  /** Once it is full no more text is kept; what else a chunk says is. */
  add(chunk: unknown, isFull: boolean): void;
  answer(): Answer;
}

const UNREADABLE: Answer = { outputs: { error: 'the answer could not be read' } };

/** Reads answers that are objects, and any other for what it is: a compatible service may answer with a text, for example. */
export function readerOf(answerOf: (answer: Fields) => Answer, fold?: () => Fold): AnswerReader {
  const read = (value: unknown): Answer => (isFields(value) ? answerOf(value) : { outputs: { outputs: value } });
  return fold === undefined ? { read } : { read, fold };
}

/** What an error of a service says, on one line. */
export function headlineOf(kind: unknown, message: unknown): string | undefined {
  const parts = [textOf(kind), textOf(message)].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(': ');
}

/** Ends a run with what `read` makes of the answer. */
export function endWithAnswer(run: Run, read: () => Answer): void {
  const error = recordAnswer(run, read);
  if (error === undefined) run.end();
  else run.fail(error);
}

/** Records an answer without ending the run; tells what the service says went wrong. */
export function recordAnswer(run: Run, read: () => Answer): unknown {
  if (!run.isOpen) return undefined;
  const { outputs, usage, model, error } = guard('reading the answer of a model', read) ?? UNREADABLE;
  run.set({ metadata: { response_model: model, usage_metadata: usage } });
  run.keepResult(usage === undefined ? outputs : { ...outputs, usage_metadata: usage });
  return error;
}
