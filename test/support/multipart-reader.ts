import type { Received } from './ingest-server.ts';

export interface Part {
  readonly name: string;
  readonly filename: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Parses a multipart body strictly (RFC 7578, RFC 2046 5.1). Throws if the `Content-Length` of a part is wrong, or if
 * data follows the last delimiter.
 */
export function readParts({ headers, body }: Pick<Received, 'headers' | 'body'>): Part[] {
  const boundary = /^multipart\/form-data; boundary=([\w-]+)$/.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined) throw new Error(`no boundary in ${headers['content-type']}`);
  const parts: Part[] = [];
  let at = 0;
  const expect = (text: string): void => {
    const found = body.subarray(at, at + text.length).toString('latin1');
    if (found !== text)
      throw new Error(`expected ${JSON.stringify(text)} at byte ${at}, found ${JSON.stringify(found)}`);
    at += text.length;
  };
  for (;;) {
    expect(`--${boundary}`);
    if (body.subarray(at, at + 2).toString('latin1') === '--') break;
    expect('\r\n');
    const end = body.indexOf('\r\n\r\n', at);
    if (end < 0) throw new Error(`no end of headers after byte ${at}`);
    const partHeaders = readHeaders(body.subarray(at, end).toString('utf8'));
    at = end + 4;
    const length = Number(partHeaders['content-length']);
    const disposition = partHeaders['content-disposition'] ?? '';
    parts.push({
      name: /; name="([^"]*)"/.exec(disposition)?.[1] ?? '',
      filename: /; filename="([^"]*)"/.exec(disposition)?.[1],
      headers: partHeaders,
      body: body.subarray(at, at + length),
    });
    at += length;
    expect('\r\n');
  }
  expect('--');
  const rest = body.subarray(at).toString('latin1');
  if (!/^(\r\n)?$/.test(rest)) throw new Error(`${rest.length} bytes after the last delimiter`);
  return parts;
}

export function readJsonParts(request: Pick<Received, 'headers' | 'body'>): Map<string, Record<string, unknown>> {
  return new Map(readParts(request).map((part) => [part.name, JSON.parse(part.body.toString('utf8'))]));
}

/** Returns the name of the run for each post and patch in a multipart body. */
export function runNames(request: Pick<Received, 'headers' | 'body'>): string[] {
  const parts = [...readJsonParts(request)].filter(([part]) => part.split('.').length === 2);
  return parts.map(([, { name }]) => String(name));
}

function readHeaders(block: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of block.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon < 1) throw new Error(`malformed header line ${JSON.stringify(line)}`);
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}
