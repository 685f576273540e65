import { cut } from '../base/text.ts';
import { EventTooLongError } from '../http/event-stream.ts';
import type { Api } from './api.ts';
import { ApiError, ConnectionError, InvalidAnswerError, TimeoutError } from './api-error.ts';
import type { Call } from './call.ts';
import type { RunPlace } from './run-failed-error.ts';
import { FeedBreak } from './stream-connection.ts';
import { type LastEvent, StreamError } from './stream-error.ts';

/** Characters of the name and the id of an event that an error shows. */
const SHOWN_MAX = 200;

/** What is known of a stream when it breaks. */
export interface BrokenStream {
  readonly api: Api;
  readonly call: Call;
  readonly place: RunPlace;
  readonly lastEvent: LastEvent | undefined;
}

/** What the reader of a stream is told of what has ended it: a StreamError where it broke, else what was thrown. */
export function toldBreak(thrown: unknown, stream: BrokenStream): unknown {
  // An event that is too long breaks the stream as well.
  if (thrown instanceof EventTooLongError)
    return streamError(new FeedBreak(thrown.message, 'it was ended', { cause: thrown }), stream);
  return thrown instanceof FeedBreak ? streamError(thrown, stream) : thrown;
}

/** The same where the stream of a run that was just made cannot be opened: nobody else tells of the run. */
export function toldUnopened(thrown: unknown, place: RunPlace): unknown {
  const isAnswer = thrown instanceof ApiError || thrown instanceof InvalidAnswerError;
  if (!isAnswer && !(thrown instanceof ConnectionError) && !(thrown instanceof TimeoutError)) return thrown;
  const { request, message } = thrown;
  const broken = { ...place, lastEvent: undefined, problem: message, outlook: 'the run may be under way' };
  return new StreamError(request, broken, { cause: thrown });
}

function streamError(
  { message, outlook, cause }: FeedBreak,
  { api, call, place, lastEvent }: BrokenStream,
): StreamError {
  // Names and ids are the server's.
  const masked = (text: string): string => cut(api.masked(text, call), SHOWN_MAX);
  const shown = lastEvent && {
    name: masked(lastEvent.name),
    id: lastEvent.id === undefined ? undefined : masked(lastEvent.id),
  };
  return new StreamError(api.factsOf(call), { ...place, lastEvent: shown, problem: message, outlook }, { cause });
}
