import type { RunRecord } from '#src/run/record.ts';
import { type Ended, startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { localModel } from './local-openai.ts';

export interface Registered extends Ended {
  /** A line for each run: the name, after two spaces for each ancestor. Siblings are in the order of their starts. */
  readonly tree: readonly string[];
  readonly runs: readonly RunRecord[];
}

/**
 * Starts a program that sends its runs to a receiver. The environment contains the receiver's address as
 * `RUNSPAN_ENDPOINT`, and the address of a local model as `MODEL`. In `env`, `<receiver>` stands for the receiver's address.
 */
export async function registered(
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<Registered> {
  const [model, receiver] = await Promise.all([localModel(), startReceiver()]);
  const given = { RUNSPAN_ENDPOINT: '<receiver>', MODEL: model.url, ...env };
  const entries = Object.entries(given).map(([name, value]) => [name, value.replace('<receiver>', receiver.url)]);
  const ended = await startProgram(command, Object.fromEntries(entries), cwd).ended;
  const runs = await receiver.runs();
  return { ...ended, runs, tree: treeOf(runs) };
}

function treeOf(runs: readonly RunRecord[]): string[] {
  const ordered = [...runs].sort((one, other) => (one.dotted_order < other.dotted_order ? -1 : 1));
  return ordered.map(({ name, dotted_order }) => `${'  '.repeat(dotted_order.split('.').length - 1)}${name}`);
}
