import { type ClickHouse, sql, string, uuids } from './connection.ts';
import { dayOfMs } from './messages.ts';

/** Two groups that contain messages of the same trace. */
export type Link = readonly [grp: string, other: string];

/** Groups that contain messages of the same traces. */
export interface LinkedGroups {
  readonly grps: ReadonlySet<string>;
  /** Time of the latest link in microseconds, or 0 for a group without links. */
  readonly linkedUs: number;
}

interface LinkRow {
  readonly grp: string;
  readonly other: string;
  readonly added_us: number;
}

/** Returns the groups that are linked to each of the given groups, by each of their ids. */
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

/** Links groups. Returns the ids of the groups that were not linked before. */
export async function addLinks(
  db: ClickHouse,
  tenant: string,
  links: readonly Link[],
  nowUs: () => number,
): Promise<string[]> {
  if (links.length === 0) return [];
  const before = await readLinks(db, tenant, links.flat());
  const linkedUs = nowUs();
  const added = links.map(([grp, other]) => ({ grp, other, added_us: linkedUs }));
  const known = [...before].map(
    ([
      grp,
      {
        grps: [other = grp],
      },
    ]) => ({ grp, other, added_us: 0 }),
  );
  const after = linkedGroups([...before.keys()], [...known, ...added]);
  const changed = [...after].filter(([grp, { grps }]) => grps.size > (before.get(grp)?.grps.size ?? 0));
  // All groups are linked to the first one, so that two queries find them.
  const toFirst = [...new Set(changed.map(([, linked]) => linked))].flatMap(({ grps }) => {
    const [first = '', ...others] = [...grps].sort();
    return others.map((other): Link => [first, other]);
  });
  const shared = { tenant, day: dayOfMs(linkedUs / 1_000), added_us: linkedUs };
  const rows = [...links, ...toFirst].flatMap(([grp, other]) => [
    { ...shared, grp, other },
    { ...shared, grp: other, other: grp },
  ]);
  await db.insert('links', rows);
  return changed.map(([grp]) => grp);
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
