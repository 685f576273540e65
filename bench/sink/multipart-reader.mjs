/**
 * Finds the runs in a `POST /runs/multipart` body. Skips payloads by their part's length: runspan sends it as
 * Content-Length, langsmith as a content type parameter.
 */
const NAME = 'name="';
const LENGTH = /(?:Content-Length: |; length=)(\d+)/;
const END_TIME = /"end_time":["\d]/;
const ID_CHARS = 36;
const HEADER_END = Buffer.from('\r\n\r\n');

export function readParts(body, arrivals) {
  let at = 0;
  for (;;) {
    const headerEnd = body.indexOf(HEADER_END, at);
    if (headerEnd < 0) return;
    const header = body.latin1Slice(at, headerEnd);
    const nameAt = header.indexOf(NAME) + NAME.length;
    const [operation, id, field] = header.slice(nameAt, header.indexOf('"', nameAt)).split('.');
    const length = LENGTH.exec(header)?.[1];
    if (length === undefined || id?.length !== ID_CHARS) {
      arrivals.malformed++;
      return;
    }
    const start = headerEnd + HEADER_END.length;
    const end = start + Number(length);
    if (field === 'inputs' || field === 'outputs' || field === 'events') arrivals.payloadBytes += Number(length);
    if (field === undefined) {
      // Not a slice of the header, which would keep the header in memory.
      const idAt = at + nameAt + operation.length + 1;
      const ownId = body.latin1Slice(idAt, idAt + ID_CHARS);
      if (operation === 'post') arrivals.start(ownId);
      if (END_TIME.test(body.latin1Slice(start, end))) arrivals.end(ownId);
    }
    at = end;
  }
}
