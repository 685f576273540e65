import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeServer, listen } from '../support/listen.ts';
import { requestBody } from '../support/request-body.ts';

/** A signature with characters that must be encoded in a URL. */
const SIGNATURE = 'c2lnbmF0dXJlLW9mLXRoZS1hZGRyZXNz%2Bw%3D%3D';

/** A store for uploads with its own origin, which accepts requests to signed URLs. */
export class ObjectStore {
  readonly issued: Set<string> = new Set();
  readonly objects: Map<string, { readonly headers: IncomingHttpHeaders; readonly bytes: Buffer }> = new Map();
  /** The headers of all requests. */
  readonly requests: IncomingMessage[] = [];
  /** Handlers for the next requests, called before the bodies arrive. */
  readonly answers: ((request: IncomingMessage, response: ServerResponse) => void)[] = [];
  readonly #server: Server = createServer((request, response) => this.#serve(request, response));

  async start(): Promise<void> {
    await listen(this.#server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  issue(path: string): string {
    this.issued.add(path);
    return `${this.url}/store/${path}?X-Expires=300&X-Signature=${SIGNATURE}`;
  }

  async close(): Promise<void> {
    await closeServer(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(request);
    const answer = this.answers.shift();
    if (answer !== undefined) return answer(request, response);
    const bytes = await requestBody(request);
    if (bytes === undefined) return;
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url);
    const path = pathname.replace('/store/', '');
    const { 'content-type': type, 'x-goog-content-length-range': range, 'content-length': length } = request.headers;
    const isSigned = searchParams.get('X-Signature') === decodeURIComponent(SIGNATURE) && this.issued.has(path);
    const isFit = type === 'application/gzip' && range === '0,209715200' && Number(length) === bytes.length;
    if (request.method !== 'PUT' || !isSigned || !isFit) {
      response.writeHead(403, { 'content-type': 'application/xml' });
      response.end(`<Error><Code>SignatureDoesNotMatch</Code><StringToSign>${request.url}</StringToSign></Error>`);
      return;
    }
    this.objects.set(path, { headers: request.headers, bytes });
    response.writeHead(200).end();
  }
}
