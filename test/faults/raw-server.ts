import { EventEmitter, once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { readByBusboy } from '../support/busboy-reader.ts';
import { readParts } from '../support/multipart-reader.ts';

/** A request as it came over the socket. */
export interface RawRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Does to an exchange what the campaign is about; each gives back whether it has done so, else it goes on as usual. */
export interface Saboteur {
  /** Called when a connection is accepted. */
  connected(socket: Socket): boolean;
  /** Called when more of a request has come. */
  received(socket: Socket, bytes: number, isIngestion: boolean): boolean;
  /** Called when a request is whole. Gives back whether it answers in the place of the server, and that with success. */
  whole(socket: Socket, request: RawRequest, isIngestion: boolean): 'as usual' | 'answered' | 'failed';
}

/** One post or patch that has come. */
export interface Arrival {
  readonly op: string;
  readonly id: string;
  readonly main: Readonly<Record<string, unknown>>;
  readonly inputs: string | undefined;
  readonly outputs: string | undefined;
  /** The client was told so. */
  readonly isAcknowledged: boolean;
}

const ACCEPTED = 'HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
const NO_INFO = 'HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}';

/** Closes the connection, as it may. */
export const LAST_ANSWER: string = ACCEPTED.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');

/** A service made of sockets alone: HTTP/1.1 as far as is needed, and nothing between a saboteur and the wire. */
export class RawServer {
  readonly arrivals: Arrival[] = [];
  /** Of multipart bodies that the two readers disagree about. */
  readonly disagreements: string[] = [];
  /** Ingestion requests that were whole. */
  requests = 0;
  readonly #saboteur: Saboteur;
  readonly #sockets = new Set<Socket>();
  readonly #events = new EventEmitter();
  readonly #reading: Promise<void>[] = [];
  #server: Server = createServer();
  #port = 0;

  constructor(saboteur: Saboteur) {
    this.#saboteur = saboteur;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Always on the same port, once it has one. */
  async listen(): Promise<void> {
    this.#server = createServer((socket) => this.#serve(socket));
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Takes no connection any more; those that it has go on. */
  refuse(): void {
    this.#server.close();
  }

  async close(): Promise<void> {
    this.refuse();
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#reading);
  }

  /** Resolves when the ends of so many runs are acknowledged. */
  async acknowledged(runs: number): Promise<void> {
    while (this.ended.size < runs) await once(this.#events, 'arrival');
  }

  get ended(): Set<string> {
    const ends = this.arrivals.filter(({ main, isAcknowledged }) => isAcknowledged && main.end_time !== undefined);
    return new Set(ends.map(({ id }) => id));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const reader = new RequestReader();
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => {});
    if (this.#saboteur.connected(socket)) return;
    socket.on('data', (chunk: Buffer) => {
      const request = reader.take(chunk);
      const { bytes, isIngestion } = reader;
      if (this.#saboteur.received(socket, bytes, isIngestion) || request === undefined) return;
      // The client has one request on a connection at a time.
      reader.clear();
      this.#answer(socket, request, isIngestion);
    });
  }

  #answer(socket: Socket, request: RawRequest, isIngestion: boolean): void {
    const done = this.#saboteur.whole(socket, request, isIngestion);
    if (done === 'as usual' && isIngestion) socket.write(ACCEPTED);
    if (done === 'as usual' && !isIngestion) socket.end(NO_INFO);
    if (!isIngestion) return;
    this.requests++;
    this.#take(request, done !== 'failed');
  }

  #take(request: RawRequest, isAcknowledged: boolean): void {
    const parts = new Map(readParts(request).map(({ name, body }) => [name, body.toString('utf8')]));
    for (const [name, text] of parts) {
      const [op = '', id = '', payload] = name.split('.');
      if (payload !== undefined) continue;
      const [inputs, outputs] = [parts.get(`${name}.inputs`), parts.get(`${name}.outputs`)];
      this.arrivals.push({ op, id, main: JSON.parse(text), inputs, outputs, isAcknowledged });
    }
    this.#events.emit('arrival');
    this.#reading.push(this.#compare(request, parts));
  }

  async #compare(request: RawRequest, parts: ReadonlyMap<string, string>): Promise<void> {
    for (const { name, body } of await readByBusboy(request)) {
      if (parts.get(name) !== body.toString('utf8')) this.disagreements.push(name);
    }
  }
}

/** What has come of one request. */
class RequestReader {
  #chunks: Buffer[] = [];
  /** Of the whole request, as soon as its head is there. */
  #bytesMax = Number.POSITIVE_INFINITY;
  bytes = 0;

  get isIngestion(): boolean {
    return this.#chunks[0]?.[0] !== 'G'.charCodeAt(0);
  }

  /** The request, when this is the end of it. */
  take(chunk: Buffer): RawRequest | undefined {
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
    if (this.#bytesMax === Number.POSITIVE_INFINITY) {
      const { end, headers } = headIn(Buffer.concat(this.#chunks));
      if (end > 0) this.#bytesMax = end + Number(headers['content-length'] ?? 0);
    }
    if (this.bytes < this.#bytesMax) return undefined;
    const all = Buffer.concat(this.#chunks);
    const { end, headers } = headIn(all);
    return { headers, body: all.subarray(end) };
  }

  clear(): void {
    this.#chunks = [];
    this.#bytesMax = Number.POSITIVE_INFINITY;
    this.bytes = 0;
  }
}

/** The headers of a request, and where its body begins; at 0 while they are not whole. */
function headIn(bytes: Buffer): { readonly end: number; readonly headers: Readonly<Record<string, string>> } {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return { end: 0, headers: {} };
  const [, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const fields = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return { end: end + 4, headers: Object.fromEntries(fields) };
}
