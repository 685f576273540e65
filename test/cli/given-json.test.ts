import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readGiven, readGivenObject, WordsMistake } from '../../src/cli/given-json.ts';
import { temporaryFolder } from '../support/folders.ts';

const { path: folder, remove } = temporaryFolder();
afterAll(remove);

describe('JSON that words give', () => {
  it('is the text, or that of a file, with a byte order mark or without', async () => {
    const file = join(folder, 'given.json');
    writeFileSync(file, '\ufeff{"a":1}');
    expect(await readGiven('[1]', '--x')).toEqual([1]);
    expect(await readGivenObject(`@${file}`, '--x')).toEqual({ a: 1 });
  });

  it.each(['[]', 'null', '5', '"text"'])('is refused where it has to be an object: %s', async (text) => {
    await expect(readGivenObject(text, '--x')).rejects.toThrow(
      new WordsMistake('expected --x to be an object of JSON'),
    );
  });

  it('is refused where it is none, without what it holds', async () => {
    await expect(readGiven('{"key":"secret-in-it",}', '--x')).rejects.toThrow(
      new WordsMistake('expected --x to be JSON; it is none at character 22'),
    );
  });
});
