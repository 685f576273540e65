import type { Item } from '../../src/export/delivery.ts';
import type { Settlement, Transport } from '../../src/export/transport.ts';

/** Everything that a transport has to say of the items. */
export async function settled(
  transport: Transport,
  items: readonly Item[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Settlement[]> {
  const all: Settlement[] = [];
  for await (const settlement of transport.send(items, signal)) all.push(settlement);
  return all;
}

/** The kinds of outcome, in the order of their settlements. */
export const kindsOf = (settlements: readonly Settlement[]): string[] => settlements.map(({ outcome }) => outcome.kind);
