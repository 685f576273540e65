import { PassThrough } from 'node:stream';
import { Busboy, type BusboyHeaders } from '@fastify/busboy';
import type { Received } from './ingest-server.ts';

export interface BusboyPart {
  readonly name: string;
  readonly mimeType: string;
  readonly body: Buffer;
}

export async function readByBusboy({ headers, body }: Pick<Received, 'headers' | 'body'>): Promise<BusboyPart[]> {
  const parts: Promise<BusboyPart>[] = [];
  const parser = Busboy({ headers: headers as BusboyHeaders, isPartAFile: () => true });
  parser.on('file', (name, stream, _filename, _encoding, mimeType) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    parts.push(
      new Promise((resolve) => {
        stream.on('end', () => resolve({ name, mimeType, body: Buffer.concat(chunks) }));
      }),
    );
  });
  const source = new PassThrough();
  source.end(body);
  await new Promise((resolve, reject) => source.pipe(parser).on('finish', resolve).on('error', reject));
  return Promise.all(parts);
}
