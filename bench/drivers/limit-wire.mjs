/** The hand-written baseline's multipart body, with the same bytes as the library's. */
import { randomBytes } from 'node:crypto';

const boundary = `runspan-${randomBytes(16).toString('hex')}`;
const FRAME = `--${boundary}\r\nContent-Disposition: form-data; name="post.`;
const TYPE = '"\r\nContent-Type: application/json\r\nContent-Length: ';
const runtime = JSON.stringify({
  sdk: 'runspan',
  sdk_version: '0.0.0',
  runtime: 'node',
  runtime_version: process.version,
  platform: `${process.platform}-${process.arch}`,
});

export const multipartType = `multipart/form-data; boundary=${boundary}`;

/** Each record is one post. Its inputs and outputs are separate parts. */
export function batchBody(records) {
  const texts = [];
  let bytes = 0;
  for (const record of records) {
    const name = record.id;
    const main = mainJson(record);
    let head = `${FRAME}${name}${TYPE}${main.length}\r\n\r\n${main}\r\n`;
    for (const [field, payload] of [
      ['inputs', record.inputs],
      ['outputs', record.outputs],
    ]) {
      if (payload === undefined) continue;
      const payloadBytes = Buffer.byteLength(payload);
      head += `${FRAME}${name}.${field}${TYPE}${payloadBytes}\r\n\r\n`;
      bytes += head.length + payloadBytes;
      texts.push(head, payload, payloadBytes);
      head = '\r\n';
    }
    bytes += head.length;
    texts.push(head, '', 0);
  }
  const footer = `--${boundary}--\r\n`;
  const buffer = Buffer.allocUnsafeSlow(bytes + footer.length);
  let at = 0;
  for (let index = 0; index < texts.length; index += 3) {
    at += buffer.latin1Write(texts[index], at);
    at += write(buffer, texts[index + 1], texts[index + 2], at);
  }
  buffer.latin1Write(footer, at);
  return buffer;
}

function mainJson({ id, traceId, parentId, name, startTime, endTime, runType, dottedOrder, error }) {
  const parent = parentId === undefined ? '' : `,"parent_run_id":"${parentId}"`;
  const extra = parentId === undefined ? `,"extra":{"runtime":${runtime}}` : '';
  const end = endTime === undefined ? '' : `,"end_time":"${endTime}"`;
  const failure = error === undefined ? '' : `,"error":${error}`;
  return `{"id":"${id}","trace_id":"${traceId}","name":"${name}","start_time":"${startTime}","run_type":"${runType}","dotted_order":"${dottedOrder}"${parent},"session_name":"default"${end}${failure}${extra}}`;
}

function write(buffer, text, bytes, at) {
  return text.length === bytes ? buffer.latin1Write(text, at) : buffer.utf8Write(text, at);
}
