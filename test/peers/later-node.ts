// A computed name, because the compiler would require types for a script that it can resolve.
const script = new URL('../../scripts/node-binary.mjs', import.meta.url).href;
const { nodeBinary }: { nodeBinary(version: string): string } = await import(script);

/** Some packages require a later Node than the first one that runspan supports. */
export const isEarlierNode: boolean = Number.parseInt(process.versions.node, 10) < 22;

/** Returns this Node if it is late enough, or else one that `scripts/install-peers.mjs` has fetched. */
export function laterNode(): string {
  return isEarlierNode ? nodeBinary('24') : process.execPath;
}
