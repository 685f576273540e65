import { parseArgs } from 'node:util';
import { DRIVER_NAMES } from './drivers.mjs';

/** What is measured beside the drivers, in the order of the report. */
const SECTION_NAMES = ['call-path', 'serialize', 'retained', 'durability', 'size'];

/** What takes its time, or packages to be installed, is measured when it is asked for. */
const ASKED_FOR = ['durability', 'size'];

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
    refuseUnknown(names, NAMES);
    return {
      turns: wholeNumber('--turns', values.turns, 20_000),
      rounds: wholeNumber('--rounds', values.rounds, 5),
      names: DRIVER_NAMES.filter((name) => names.includes(name)),
      sections: SECTION_NAMES.filter((name) => names.includes(name)),
    };
  });
}

/** The same for the full benchmark: which cells, whether finished ones too, and which share of the turns, for a try. */
export function readFullOptions(args, cells) {
  return orExit(`usage: npm run bench:full -- [--only CELL,…] [--fresh] [--share N]\ncells: ${cells.join(' ')}`, () => {
    const options = { only: { type: 'string' }, fresh: { type: 'boolean' }, share: { type: 'string' } };
    const { values } = parseArgs({ args, options });
    const only = values.only?.split(',') ?? cells;
    refuseUnknown(only, cells);
    const share = Number(values.share ?? 1);
    if (!(share > 0 && share <= 1))
      throw new Error(`expected --share to be above 0 and at most 1, got '${values.share}'`);
    return { only, isFresh: values.fresh ?? false, share };
  });
}

function refuseUnknown(names, known) {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`there is no ${unknown.map((name) => `'${name}'`).join(', ')}`);
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
