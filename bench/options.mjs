import { parseArgs } from 'node:util';

/** In the order of the table; `limit` is what the others are divided by. */
export const DRIVERS = ['untraced', 'limit', 'traceable', 'processor', 'otlp-json', 'otlp-protobuf', 'off'];

/** What is measured beside the drivers, in the order of the report. */
export const SECTIONS = ['call-path', 'serialize', 'retained', 'durability'];

const NAMES = [...DRIVERS, ...SECTIONS];
const USAGE = `usage: npm run bench -- [--turns N] [--rounds N] [--only ${NAMES.join(',')}]`;

/** What is asked for on the command line. A mistake is told in one line, and ends the process with 2. */
export function readOptions(args) {
  try {
    const { values } = parseArgs({
      args,
      options: { turns: { type: 'string' }, rounds: { type: 'string' }, only: { type: 'string' } },
    });
    const names = values.only?.split(',') ?? NAMES;
    const unknown = names.filter((name) => !NAMES.includes(name));
    if (unknown.length > 0) throw new Error(`there is no ${unknown.map((name) => `'${name}'`).join(', ')}`);
    return {
      turns: wholeNumber('--turns', values.turns, 20_000),
      rounds: wholeNumber('--rounds', values.rounds, 5),
      names: DRIVERS.filter((name) => names.includes(name)),
      sections: SECTIONS.filter((name) => names.includes(name)),
    };
  } catch (error) {
    console.error(`bench: ${error.message.split('. ', 1)[0]}\n${USAGE}`);
    process.exit(2);
  }
}

function wholeNumber(flag, text, otherwise) {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,7}$/.test(text)) throw new Error(`expected ${flag} to be a whole number from 1, got '${text}'`);
  return Number(text);
}
