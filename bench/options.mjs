import { parseArgs } from 'node:util';
import { DRIVER_NAMES } from './drivers.mjs';

/** What is measured beside the drivers, in the order of the report. */
const SECTION_NAMES = ['call-path', 'serialize', 'retained', 'durability'];

/** What takes its time is measured when it is asked for. */
const ASKED_FOR = ['durability'];

const NAMES = [...DRIVER_NAMES, ...SECTION_NAMES];
const USAGE = `usage: npm run bench -- [--turns N] [--rounds N] [--only ${NAMES.join(',')}]`;

/** What is asked for on the command line. A mistake is told in one line, and ends the process with 2. */
export function readOptions(args) {
  return orExit(USAGE, () => {
    const { values } = parseArgs({
      args,
      options: { turns: { type: 'string' }, rounds: { type: 'string' }, only: { type: 'string' } },
    });
    const names = values.only?.split(',') ?? NAMES.filter((name) => !ASKED_FOR.includes(name));
    const unknown = names.filter((name) => !NAMES.includes(name));
    if (unknown.length > 0) throw new Error(`there is no ${unknown.map((name) => `'${name}'`).join(', ')}`);
    return {
      turns: wholeNumber('--turns', values.turns, 20_000),
      rounds: wholeNumber('--rounds', values.rounds, 5),
      names: DRIVER_NAMES.filter((name) => names.includes(name)),
      sections: SECTION_NAMES.filter((name) => names.includes(name)),
    };
  });
}

function orExit(usage, read) {
  try {
    return read();
  } catch (error) {
    console.error(`bench: ${error.message.split('. ', 1)[0]}\n${usage}`);
    process.exit(2);
  }
}

function wholeNumber(flag, text, otherwise) {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,7}$/.test(text)) throw new Error(`expected ${flag} to be a whole number from 1, got '${text}'`);
  return Number(text);
}
