import { visible, visibleJson } from '../base/text.ts';
import type { RunOperation } from '../receiver/store/store.ts';

/** Characters of a field that are shown where a terminal may be; a file has all. */
const SHOWN_MAX = 2_000;

/** Bytes of the fields as JSON, and of the attachments. */
export function recordBytes({ fields, attachments }: RunOperation): number {
  const sizes = Object.values(fields).map((value) => Buffer.byteLength(JSON.stringify(value)));
  return [...sizes, ...attachments.map(({ bytes }) => bytes.length)].reduce((sum, size) => sum + size, 0);
}

/**
 * A record as people read it: what it is, then a line for each field and each attachment, with its size in bytes. Long
 * fields are cut, unless it is all to be shown.
 */
export function recordLines(operation: RunOperation, isCut: boolean): string[] {
  const { kind, id, fields, attachments } = operation;
  const { name = '', run_type: type = '' } = fields;
  const lines = [`${kind} ${id}  ${[name, type].filter(Boolean).map(visible).join(', ')}`];
  for (const [field, value] of Object.entries(fields)) {
    const json = JSON.stringify(value);
    const shown = isCut && json.length > SHOWN_MAX ? `${json.slice(0, SHOWN_MAX)}…` : json;
    lines.push(line(field, Buffer.byteLength(json), visible(shown)));
  }
  for (const attachment of attachments) {
    const told = `${visible(JSON.stringify(attachment.name))} ${visible(attachment.mimeType)}`;
    lines.push(line('attachment', attachment.bytes.length, told));
  }
  return lines;
}

/** The same for machines: one object of JSON on one line, complete but for the bytes of attachments. */
export function recordJson(operation: RunOperation): string {
  const { kind, id, fields, attachments } = operation;
  const told = {
    kind,
    id,
    bytes: recordBytes(operation),
    fields,
    attachments: attachments.map(({ name, mimeType, bytes }) => ({ name, mime_type: mimeType, size: bytes.length })),
  };
  return visibleJson(JSON.stringify(told));
}

function line(label: string, bytes: number, text: string): string {
  return `  ${label.padEnd(13)} ${String(bytes).padStart(7)}  ${text}`;
}
