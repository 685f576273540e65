import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { forgetOldest } from '../../base/forget-oldest.ts';
import { toHttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';
import { type Routes, targetOf } from '../../receiver/http/routes.ts';

/** A request that the platform has received. */
export interface PlatformRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The parsed JSON body. Undefined if the request has none, and for trace ingestion. */
  readonly body: unknown;
  /** Status of the response. Undefined until it is known. */
  readonly status: number | undefined;
}

/** Answers a request instead of the platform. */
export type PlatformAnswer = (request: IncomingMessage) => RouteResponse | Promise<RouteResponse>;

const REQUESTS_MAX = 10_000;

type Seen = { -readonly [Field in keyof PlatformRequest]: PlatformRequest[Field] };

/** Records the requests to a platform, and gives some of them other answers. */
export class Requests {
  readonly #seen = new Map<IncomingMessage, Seen>();
  readonly #answers: { readonly pattern: RegExp; readonly answer: PlatformAnswer }[] = [];

  get seen(): PlatformRequest[] {
    return [...this.#seen.values()];
  }

  next(pattern: RegExp, answer: PlatformAnswer): void {
    this.#answers.push({ pattern, answer });
  }

  setBody(request: IncomingMessage, body: unknown): void {
    const seen = this.#seen.get(request);
    if (seen !== undefined) seen.body = body;
  }

  recorded(routes: Routes): Routes {
    return async (request, liftTimeout, left, admitted) => {
      const { method = '', headers, socket } = request;
      const { pathname: path, searchParams: query } = targetOf(request);
      const seen: Seen = { method, path, query, headers, body: undefined, status: undefined };
      this.#seen.set(request, seen);
      forgetOldest(this.#seen, REQUESTS_MAX);
      // Unlike `test`, `search` does not change a global pattern, which another answer may have, too.
      const index = this.#answers.findIndex(({ pattern }) => `${method} ${path}`.search(pattern) >= 0);
      const [found] = index < 0 ? [] : this.#answers.splice(index, 1);
      try {
        const response = await (found?.answer(request) ?? routes(request, liftTimeout, left, admitted));
        if (!socket.destroyed) seen.status = response.status;
        return response;
      } catch (error) {
        if (found !== undefined) socket.destroy();
        else seen.status = toHttpError(error)?.status ?? 500;
        throw error;
      }
    };
  }
}
