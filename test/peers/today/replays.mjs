// Replays a fixture several times: `replays.mjs <fixture> <list of options as JSON>`. Prints a line of JSON with the results,
// and with the code and message of each error.
import { replay } from 'runspan/testing';

const [fixture, lists] = process.argv.slice(2);
const results = await Promise.allSettled(JSON.parse(lists).map((options) => replay(fixture, options)));
const shown = results.map(({ value, reason }) => value ?? { code: reason.code, message: reason.message });
console.log(JSON.stringify(shown));
