import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './folders.ts';

/** The server that the examples ask, as it has been started. */
export interface LocalModel {
  readonly url: string;
  readonly requests: { method: string; url: string; headers: Record<string, string>; bodyText: string }[];
  close(): Promise<void>;
}

// A script without types; a name that the compiler can follow would have it ask for them.
const script = pathToFileURL(join(root, 'examples/local-model/server.js')).href;

export const { startLocalModel }: { startLocalModel(options?: { port?: number }): Promise<LocalModel> } = await import(
  script
);
