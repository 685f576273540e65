import type { StreamBody } from '../http/client.ts';
import type { CallOptions } from './client-options.ts';

/** Values of a query; undefined leaves one out, a list repeats its name. */
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** One call of a service, as a client describes it. */
export interface Call {
  /** For errors, hooks and runs: `deployments.create`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Below the path of the client's address; `pathOf` makes one of segments. */
  readonly path: string;
  readonly query?: Query;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Makes what is sent as it is, instead of a body; for each attempt anew. */
  readonly stream?: () => StreamBody;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it may be sent twice; GET, PUT and DELETE may unless it says otherwise (RFC 9110, 9.2.2). */
  readonly isIdempotent?: boolean;
  /** What it carries that no error may repeat. */
  readonly secrets?: readonly string[];
  readonly options?: CallOptions | undefined;
}

/** A path of segments, each encoded: no id leads to another path. */
export function pathOf(...segments: readonly string[]): string {
  // `encodeURIComponent` leaves dots, and a segment of dots would be taken out of the path with the one before it.
  return segments.map((segment) => `/${encoded(segment).replace(/^\.{1,2}$/, dotsEncoded)}`).join('');
}

export function queryText(query: Query | undefined): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) => {
    const values = value === undefined ? [] : Array.isArray(value) ? value : [value];
    return values.map((one) => `${encoded(name)}=${encoded(String(one))}`);
  });
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** Half of a pair has no encoding, and would throw. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function dotsEncoded(dots: string): string {
  return dots.replaceAll('.', '%2E');
}
