// Mistakes in payloads, redaction and attachments, each of which has to make a test fail.
const writer = 'src/run/json-writer.ts';
const output = 'src/run/json-output.ts';
const scan = 'src/run/json-scan.ts';
const redaction = 'src/run/redaction.ts';
const attachments = 'src/run/payload-attachments.ts';

export const defects = [
];
