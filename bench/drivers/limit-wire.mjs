/** The multipart body of the hand-made limit, byte for byte what the library lays for the same runs. */
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

export function layBatch(runs) {
  const texts = [];
  let bytes = 0;
  for (const run of runs) {
    const main = mainJson(run);
    const inputsBytes = Buffer.byteLength(run.inputs);
    const outputsBytes = Buffer.byteLength(run.outputs);
    const head = `${FRAME}${run.id}${TYPE}${main.length}\r\n\r\n${main}\r\n${FRAME}${run.id}.inputs${TYPE}${inputsBytes}\r\n\r\n`;
    const middle = `\r\n${FRAME}${run.id}.outputs${TYPE}${outputsBytes}\r\n\r\n`;
    bytes += head.length + inputsBytes + middle.length + outputsBytes + 2;
    texts.push(head, run.inputs, inputsBytes, middle, run.outputs, outputsBytes);
  }
  const footer = `--${boundary}--\r\n`;
  const buffer = Buffer.allocUnsafeSlow(bytes + footer.length);
  let at = 0;
  for (let index = 0; index < texts.length; index += 6) {
    at += buffer.latin1Write(texts[index], at);
    at += write(buffer, texts[index + 1], texts[index + 2], at);
    at += buffer.latin1Write(texts[index + 3], at);
    at += write(buffer, texts[index + 4], texts[index + 5], at);
    at += buffer.latin1Write('\r\n', at);
  }
  buffer.latin1Write(footer, at);
  return buffer;
}

function mainJson({ id, traceId, parentId, name, startTime, endTime, runType, dottedOrder }) {
  const parent = parentId === undefined ? '' : `,"parent_run_id":"${parentId}"`;
  const extra = parentId === undefined ? `,"extra":{"runtime":${runtime}}` : '';
  return `{"id":"${id}","trace_id":"${traceId}","name":"${name}","start_time":"${startTime}","run_type":"${runType}","dotted_order":"${dottedOrder}"${parent},"session_name":"default","end_time":"${endTime}"${extra}}`;
}

function write(buffer, text, bytes, at) {
  return text.length === bytes ? buffer.latin1Write(text, at) : buffer.utf8Write(text, at);
}
