import { diagnostics } from '../../base/diagnostics.ts';
import type { OtlpSettings } from '../../config/otlp.ts';
import type { HttpResponse } from '../../http/transport.ts';
import type { readProtobufResponse } from '../../otel/otlp/protobuf.ts';
import type { SentRun } from '../../otel/otlp/run-to-span.ts';
import type { Fields } from '../../payload/fields.ts';
import { setSoon } from '../../platform/timers.ts';
import { dropAttachments, type Item } from '../delivery.ts';
import type { EncodedBody, RunEncoder } from './encoder.ts';
import { strippedPayloads } from './multipart.ts';
import { jsonIn } from './reason.ts';

/**
 * Number of bytes of runs to encode per turn of the event loop. Messages of model calls are parsed and converted, which
 * takes longer than a multipart body.
 */
const SLICE_BYTES = 256 * 1024;

/** Encodes runs as the spans of an `ExportTraceServiceRequest`. OTLP has no attachments. */
export function otlpEncoder({ format, resource }: OtlpSettings): RunEncoder {
  /** Loaded for the first request. */
  let readProtobuf: typeof readProtobufResponse | undefined;
  const encode = async (items: readonly Item[], signal: AbortSignal): Promise<EncodedBody> => {
    const { jsonEncoding, protobufEncoding, readProtobufResponse, SpanGroups } = await import(
      '../../otel/otlp/traces.ts'
    );
    const encoding = format === 'json' ? jsonEncoding : protobufEncoding;
    readProtobuf = readProtobufResponse;
    const slices: Uint8Array[] = [];
    for (let at = 0; at < items.length; ) {
      if (slices.length > 0) await new Promise<void>((resolve) => void setSoon(resolve));
      signal.throwIfAborted();
      const groups = new SpanGroups(resource);
      for (let bytes = 0; at < items.length && bytes < SLICE_BYTES; at++) {
        const item = items[at] as Item;
        leaveOutAttachments(item);
        groups.add(sentOf(item));
        bytes += item.delivery.bytes;
      }
      slices.push(encoding.encode(groups.all));
    }
    return { contentType: encoding.contentType, chunks: encoding.join(slices) };
  };
  // A service may respond in another encoding than that of the request.
  const fieldsIn = (response: HttpResponse): Fields => {
    const isProtobuf = /protobuf/.test(String(response.headers['content-type']));
    return isProtobuf ? (readProtobuf?.(response.status, response.bytes) ?? {}) : jsonIn(response);
  };
  return { kind: 'otlp', path: '', encode, fieldsIn };
}

function sentOf(item: Item): SentRun {
  const { run } = item.delivery;
  const { isEnded, endOverride } = item;
  const end = isEnded ? (endOverride ?? run) : undefined;
  const { inputs, outputs, events } = item.stripped === 'payloads' ? strippedPayloads(item) : item;
  return {
    run,
    inputs,
    outputs,
    events,
    endTime: end?.endTime,
    error: end?.error,
    endReason: end?.endReason,
    isIncomplete: !isEnded || endOverride !== undefined,
  };
}

function leaveOutAttachments(item: Item): void {
  if (item.attachments.length === 0) return;
  diagnostics.warnOnce('otlp attachments', 'OTLP has no attachments, so the attachments of runs are not sent');
  dropAttachments(item.delivery.run, item.attachments);
  item.attachments = [];
}
