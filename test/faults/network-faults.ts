import type { Socket } from 'node:net';
import type { RawRequest } from './raw-server.ts';

/** What becomes of a connection as soon as it is there. */
export interface ConnectionFault {
  readonly kind: 'connection';
  readonly name: string;
  /** Undefined where there is no connection at all. */
  readonly act: ((socket: Socket) => void) | undefined;
}

/** What becomes of a request on its way. */
export interface RequestFault {
  readonly kind: 'request';
  readonly name: string;
  /** Bytes after which the connection is reset. */
  readonly bytes: number;
  /** Of the inputs of each run, so that the system does not take all of a request before it is read. */
  readonly payloadBytes?: number;
}

/** What comes in the place of an answer. */
export interface AnswerFault {
  readonly kind: 'answer';
  readonly name: string;
  readonly act: (socket: Socket) => void;
  /** It is one nevertheless, whole and in order. */
  readonly isAnswer?: true;
  /** It happens again and again. */
  readonly isLasting?: true;
}

/** From this request on the key is rejected, until it is another. */
export interface KeyFault {
  readonly kind: 'key';
  readonly name: string;
}

export type NetworkFault = ConnectionFault | RequestFault | AnswerFault | KeyFault;

const HEAD = 'HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\n';
const WHOLE = `${HEAD}content-length: 2\r\n\r\n{}`;

const connection = (name: string, act?: (socket: Socket) => void): ConnectionFault => ({
  kind: 'connection',
  name,
  act,
});
const answer = (name: string, act: (socket: Socket) => void): AnswerFault => ({ kind: 'answer', name, act });
/** These bytes, and then the end of the connection, or nothing more. */
const cut = (name: string, bytes: string): AnswerFault => answer(name, (socket) => socket.end(bytes));
const stuck = (name: string, bytes: string): AnswerFault =>
  answer(`${name}, and silence`, (socket) => socket.write(bytes));
const status = (code: number, headers = ''): AnswerFault =>
  answer(`status ${code}${headers && ' with Retry-After'}`, (socket) =>
    socket.write(`HTTP/1.1 ${code} As Told\r\n${headers}content-length: 2\r\n\r\n{}`),
  );

export const NETWORK_FAULTS: readonly NetworkFault[] = [
  connection('refused connection'),
  connection('reset on accept', (socket) => socket.resetAndDestroy()),
  connection('closed on accept', (socket) => socket.end()),
  connection('silence after accept', (socket) => socket.pause()),
  ...[1, 16, 120, 400, 900, 1_800, 3_600].map((bytes) => reset(`reset after ${bytes} bytes`, bytes)),
  { ...reset('reset within a large body', 300_000), payloadBytes: 1_000_000 },
  answer('reset after the request', (socket) => socket.resetAndDestroy()),
  cut('closed after the request', ''),
  stuck('nothing', ''),
  cut('half a status line', 'HTTP/1.1 2'),
  stuck('half a status line', 'HTTP/1.1 2'),
  cut('half of the headers', HEAD.slice(0, -10)),
  stuck('half of the headers', HEAD.slice(0, -10)),
  stuck('headers', `${HEAD}content-length: 20\r\n\r\n`),
  cut('half a body', `${HEAD}content-length: 20\r\n\r\n{"half":`),
  stuck('half a body', `${HEAD}content-length: 20\r\n\r\n{"half":`),
  cut('two lengths', `${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`),
  { ...cut('a length that is too small', `${HEAD}content-length: 2\r\n\r\n{"more":"than that"}`), isAnswer: true },
  cut('truncated chunks', `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{"a`),
  stuck('truncated chunks', `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{"a`),
  cut('chunks of no size', `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n`),
  cut('another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'),
  cut('a malformed header', `HTTP/1.1 202 Accepted\r\nno header at all\r\n\r\n{}`),
  cut('headers beyond every limit', `${HEAD}${`x-more: ${'x'.repeat(1_000)}\r\n`.repeat(100)}\r\n`),
  { ...cut('a connection that is closed when it is idle', WHOLE), isAnswer: true, isLasting: true },
  { ...answer('an answer byte by byte', (socket) => drip(socket, WHOLE)), isAnswer: true },
  answer('an answer without end', dripForEver),
  status(408),
  status(413),
  status(429, 'retry-after: 1\r\n'),
  status(500),
  status(503),
  status(503, 'retry-after: 1\r\n'),
  { kind: 'key', name: 'status 401, until the key is another' },
];

/** Whether the key of a request is the one that is rejected. */
export function isOldKey({ headers }: RawRequest): boolean {
  return headers['x-api-key'] === 'old-key';
}

function reset(name: string, bytes: number): RequestFault {
  return { kind: 'request', name, bytes };
}

function drip(socket: Socket, text: string): void {
  if (text === '' || socket.destroyed) return;
  socket.write(text.slice(0, 1), () => setImmediate(() => drip(socket, text.slice(1))));
}

/** A byte whenever the one before has gone, until the client has had enough. */
function dripForEver(socket: Socket): void {
  socket.write(`${HEAD}content-length: 60000\r\n\r\n`);
  const beat = setInterval(() => socket.write(' '), 5);
  socket.on('close', () => clearInterval(beat));
}
