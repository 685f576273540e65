// A script without types; a name that the compiler can follow would have it ask for them.
const script = new URL('../../scripts/node-binary.mjs', import.meta.url).href;
const { nodeBinary }: { nodeBinary(version: string): string } = await import(script);

const LATER = 22;

/** Some packages say that they need a later Node than the first one that runspan supports. */
export const isEarlierNode: boolean = Number.parseInt(process.versions.node, 10) < LATER;

/** This Node, where it is late enough, else one that `scripts/install-peers.mjs` has fetched. */
export function laterNode(): string {
  return isEarlierNode ? nodeBinary(String(LATER)) : process.execPath;
}
