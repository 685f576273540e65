import type { HttpResponse } from '../../http/transport.ts';
import type { Fields } from '../../payload/fields.ts';
import type { RequestKind } from '../../run/stats.ts';
import type { Item } from '../delivery.ts';

export interface EncodedBody {
  readonly contentType: string;
  readonly chunks: Uint8Array[];
}

/** How a batch is written into one request. Whether and when the request is sent again does not depend on it. */
export interface RunEncoder {
  readonly kind: RequestKind;
  /** Path of the request, below the endpoint's. */
  readonly path: string;
  /** Rejects if the signal aborts. */
  encode(items: readonly Item[], signal: AbortSignal): Promise<EncodedBody>;
  /** Returns the fields of a response as in JSON. Undefined if responses are JSON. */
  readonly fieldsIn?: (response: HttpResponse) => Fields;
}
