import { fieldsOf, type ProtocolEvent } from './protocol.ts';

/** Characters of one event; a stream with a longer one is no stream of ours. */
const EVENT_CHARS_MAX = 64 * 1024 * 1024;

/** Takes server-sent events apart as they come, whatever the pieces are that they come in. */
export class EventReader {
  #rest = '';

  /** The events that are complete with this piece; a comment, by which the server says that it is there, is none. */
  read(piece: string): ProtocolEvent[] {
    const frames = (this.#rest + piece).split('\n\n');
    this.#rest = frames.pop() ?? '';
    if (this.#rest.length > EVENT_CHARS_MAX) throw new Error('An event is too long.');
    return frames.flatMap((frame) => eventOf(frame) ?? []);
  }
}

function eventOf(frame: string): ProtocolEvent | undefined {
  const data = frame
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(line[5] === ' ' ? 6 : 5))
    .join('\n');
  if (data === '') return undefined;
  try {
    const event = JSON.parse(data) as Partial<ProtocolEvent>;
    const { method, params } = event;
    if (typeof method !== 'string' || !Array.isArray(fieldsOf(params).namespace)) return undefined;
    return event as ProtocolEvent;
  } catch {
    // What cannot be read is no reason to lose what can be.
    return undefined;
  }
}
