import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { appendWhole, readWhole, systemFs } from '../../delivery/spool/fs.ts';
import { exampleIn, SET_FOLDER, SET_NAME, setFile } from '../../replay/run-set.ts';
import { CommandFailure, UsageError } from '../command-line.ts';

const BYTES_MAX = 64 * 1024 * 1024;

type Added = { readonly added: number; readonly kept: number; readonly file: string };

/**
 * Appends examples, by the ids of their runs, to a set of the working folder. Existing lines never change, because a
 * person may have edited them: `kept` is the number of runs that the set already has. Throws if the file cannot be used.
 */
export function appendExamples(folder: string, name: string, examples: ReadonlyMap<string, string>): Added {
  if (!SET_NAME.test(name)) throw new UsageError('the name has 1 to 64 letters, digits, . _ -, no .. or leading dot');
  const file = setFile(name);
  mkdirSync(join(folder, SET_FOLDER), { recursive: true });
  if (!isFolder(join(folder, SET_FOLDER))) throw new CommandFailure(`${SET_FOLDER} is a symbolic link`);
  const { O_APPEND, O_CREAT, O_NOFOLLOW = 0, O_RDWR } = constants;
  const fd = openSync(join(folder, file), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW);
  try {
    const facts = fstatSync(fd);
    const rule = `expected ${file} to be a file of at most 64 MiB`;
    if (!facts.isFile() || facts.size > BYTES_MAX) throw new CommandFailure(rule);
    const text = readFileSync(fd, 'utf8');
    const known = new Set(text.split('\n').map((line, at) => isFilled(line) && runIdIn(line, `${file}:${at + 1}`)));
    const lines = [...examples].flatMap(([id, line]) => (known.has(id) ? [] : `${line}\n`));
    const bytes = Buffer.from((text === '' || text.endsWith('\n') ? '' : '\n') + lines.join(''));
    if (facts.size + bytes.length > BYTES_MAX) throw new CommandFailure(rule);
    // Another process may append too. Each writes once to the end of the file, so that lines are never mixed.
    if (lines.length > 0) appendWhole(systemFs, fd, facts.size, bytes);
    return { added: lines.length, kept: examples.size - lines.length, file };
  } finally {
    closeSync(fd);
  }
}

/** Returns the sets of the working folder. Lines are only counted, so that a broken set does not hide the others. */
export function setsIn(folder: string): { readonly name: string; readonly examples: number }[] {
  const path = join(folder, SET_FOLDER);
  return (isFolder(path) ? readdirSync(path) : []).flatMap((file) => {
    const [, name = ''] = /^(.*)\.jsonl$/.exec(file) ?? [];
    const found = SET_NAME.test(name) ? readWhole(systemFs, join(path, file), BYTES_MAX) : undefined;
    return found === undefined ? [] : { name, examples: `${found.bytes}`.split('\n').filter(isFilled).length };
  });
}

/** A symbolic link is no folder, because it may lead out of the working folder. */
const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

const isFilled = (line: string): boolean => line.trim() !== '';

function runIdIn(line: string, place: string): unknown {
  const example = exampleIn(line);
  if (example === undefined) throw new CommandFailure(`${place} is no JSON object`);
  return example.source_run_id;
}
