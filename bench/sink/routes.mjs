/** The measured libraries' requests, and the service's responses. */
import { readRows } from './logs3-reader.mjs';
import { readParts } from './multipart-reader.mjs';
import { readJsonSpans, readProtobufSpans } from './otlp-reader.mjs';

/** Returns the response status and the reader for a request that contains runs or spans. */
export function intakeOf({ method, url, headers }) {
  if (method !== 'POST') return undefined;
  if (url === '/runs/multipart') return { status: 202, read: readParts };
  // OpenTelemetry and langfuse.
  if (url === '/v1/traces' || url === '/api/public/otel/v1/traces') {
    return { status: 200, read: headers['content-type'] === 'application/json' ? readJsonSpans : readProtobufSpans };
  }
  if (url === '/logs3') return { status: 200, read: readRows };
  return undefined;
}

/** Returns the response body for a request that libraries send before the first runs. */
export function answerTo({ method, url, headers }, { encoding }) {
  switch (`${method} ${url}`) {
    case 'GET /info':
      return {
        version: 'bench',
        // The limits that runspan's receiver reports.
        batch_ingest_config: { use_multipart_endpoint: true, size_limit: 1_000, size_limit_bytes: 20 * 1024 * 1024 },
        instance_flags: { gzip_body_enabled: encoding === 'gzip', zstd_compression_enabled: encoding === 'zstd' },
      };
    case 'POST /api/apikey/login':
      return { org_info: [{ id: 'bench', name: 'bench', api_url: `http://${headers.host}` }] };
    case 'POST /api/project/register':
      return { project: { id: 'bench', name: 'bench' } };
    case 'GET /version':
      return { version: 'bench' };
    default:
      return undefined;
  }
}
