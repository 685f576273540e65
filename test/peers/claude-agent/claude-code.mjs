// Stands for Claude Code: replays the output that version 2.1.332 wrote, and reads the input of the SDK in between.
// `RECORDING` names the file. After `LINES` lines, the program waits for the end of its input, or for a signal. `ID` is
// added to the ids of messages and tools, because each session has its own.
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const { RECORDING, LINES, LOG, ID = '' } = process.env;
const lines = readFileSync(new URL(`${RECORDING}.jsonl`, import.meta.url), 'utf8')
  .trimEnd()
  .replaceAll(/\b(?:toolu|msg)_/g, `$&${ID}`)
  .split('\n');
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** The ids of requests of this SDK, by those in the recording. */
const ids = new Map();
log(process.argv.slice(2).join(' '));

for (const line of lines.slice(0, LINES)) {
  const { in: recorded, out } = JSON.parse(line);
  if (recorded !== undefined) {
    const { value = '{}' } = await input.next();
    const { request_id } = JSON.parse(value);
    if (request_id !== undefined) ids.set(recorded.request_id, request_id);
    log(value.replace(request_id, 'id'));
  } else {
    const { request_id } = out.response ?? {};
    console.log(
      JSON.stringify(
        request_id === undefined ? out : { ...out, response: { ...out.response, request_id: ids.get(request_id) } },
      ),
    );
  }
}
while (!(await input.next()).done);

function log(text) {
  if (LOG) appendFileSync(LOG, `${text}\n`);
}
