// Mistakes in payloads, redaction and attachments, each of which has to make a test fail.

export const defects = [];
