import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readDocuments } from '../documents/paragraphs.ts';
import { Retriever } from '../documents/retriever.ts';
import { SettingsError } from '../settings.ts';

/** Finds the place in the documents of a folder, or in those of runspan, which come with the package. Throws where there are none. */
export function givenDocuments(folder: string | undefined): Retriever {
  return folder === undefined ? new Retriever(readDocuments(ownDocumentation())) : within(folder);
}

function ownDocumentation(): string {
  return fileURLToPath(new URL('./docs/', import.meta.resolve('runspan/package.json')));
}

function within(folder: string): Retriever {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new SettingsError(`--docs has to be a folder; there is none at ${folder}`);
  const paragraphs = readDocuments(folder);
  if (paragraphs.length === 0)
    throw new SettingsError(`--docs has to be a folder with Markdown files; there is no text of such in ${folder}`);
  return new Retriever(paragraphs);
}
