import { type ClickHouse, sql, string, uuids } from './connection.ts';
import { dayOfMs } from './messages.ts';

/** Two groups that contain messages of the same trace and are therefore read together. */
export type Link = readonly [grp: string, other: string];

/** Groups that are linked to each other, directly or through other groups. */
export interface LinkedGroups {
  readonly grps: ReadonlySet<string>;
  /** Time of the latest link in microseconds, or 0 if there are no links. */
  readonly linkedUs: number;
}

interface LinkRow {
  readonly grp: string;
  readonly other: string;
  readonly added_us: number;
}

/** Returns a map from group id to the groups linked to it. A group without links is linked only to itself. */
export async function readLinks(
  db: ClickHouse,
  tenant: string,
  grps: readonly string[],
): Promise<ReadonlyMap<string, LinkedGroups>> {
  const links: LinkRow[] = [];
  const read = new Set<string>();
  for (let next = [...new Set(grps)]; next.length > 0; ) {
    const rows = await db.rows<LinkRow>(
      sql('SELECT grp, other, added_us FROM links WHERE tenant = ? AND grp IN (?)', string(tenant), uuids(next)),
    );
    for (const grp of next) read.add(grp);
    links.push(...rows);
    next = [...new Set(rows.map(({ other }) => other))].filter((grp) => !read.has(grp));
  }
  return linkedGroups([...read], links);
}

/** Stores links in both directions. */
export async function addLinks(db: ClickHouse, tenant: string, links: readonly Link[], addedUs: number): Promise<void> {
  const shared = { tenant, day: dayOfMs(addedUs / 1_000), added_us: addedUs };
  await db.insert(
    'links',
    links.flatMap(([grp, other]) => [
      { ...shared, grp, other },
      { ...shared, grp: other, other: grp },
    ]),
  );
}

function linkedGroups(grps: readonly string[], links: readonly LinkRow[]): Map<string, LinkedGroups> {
  const byGroup = new Map<string, { grps: Set<string>; linkedUs: number }>();
  const linkedTo = (grp: string) => byGroup.get(grp) ?? { grps: new Set([grp]), linkedUs: 0 };
  for (const grp of grps) byGroup.set(grp, linkedTo(grp));
  for (const { grp, other, added_us } of links) {
    const linked = linkedTo(grp);
    linked.linkedUs = Math.max(linked.linkedUs, added_us, linkedTo(other).linkedUs);
    for (const member of linkedTo(other).grps) linked.grps.add(member);
    if (byGroup.get(other) !== linked) for (const member of linked.grps) byGroup.set(member, linked);
  }
  return byGroup;
}
