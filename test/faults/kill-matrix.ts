export const ENDINGS = [
  ...['natural', 'process.exit', 'throw', 'reject', 'SIGTERM', 'SIGTERM, not asked for', 'SIGTERM, registered'],
  ...['SIGINT', 'SIGINT twice', 'SIGKILL', 'heap full'],
] as const;
export const DURABILITIES = ['memory', 'spill', 'write-ahead'] as const;
export const SERVICES = ['up', 'down', 'hanging'] as const;

/** The protocols of the program, and of the same program when it is started again. */
export const PROTOCOLS = [
  ['runs', 'runs'],
  ['otlp-json', 'otlp-json'],
  ['runs', 'otlp-json'],
  ['otlp-json', 'runs'],
] as const;

export type Protocols = (typeof PROTOCOLS)[number];
export type Ending = (typeof ENDINGS)[number];
export type Durability = (typeof DURABILITIES)[number];
export type Service = (typeof SERVICES)[number];

/**
 * What is promised for ten runs that were recorded before the end. `now`: they arrive before it. `later`: they arrive
 * after the same program is started again, with the service up. `told`: they are lost, and the log says so. `none`:
 * they are lost without a report.
 */
export type Promised = 'now' | 'later' | 'told' | 'none';

export interface Cell {
  readonly ending: Ending;
  readonly durability: Durability;
  readonly service: Service;
  readonly promised: Promised;
}

const TABLE = `
                       | memory             | spill              | write-ahead        |
                       | up   down  hanging | up   down  hanging | up   down  hanging |
natural                | now  told  told    | now  later later   | now  later later   |
process.exit           | told told  told    | later later later  | later later later  |
throw                  | told told  told    | later later later  | later later later  |
reject                 | told told  told    | later later later  | later later later  |
SIGTERM                | now  told  told    | now  later later   | now  later later   |
SIGTERM, not asked for | none none  none    | none none  none    | later later later  |
SIGTERM, registered    | now  told  told    | now  later later   | now  later later   |
SIGINT                 | now  told  told    | now  later later   | now  later later   |
SIGINT twice           | none told  told    | later later later  | later later later  |
SIGKILL                | none none  none    | none none  none    | later later later  |
heap full              | none none  none    | none none  none    | later later later  |
`;

const rows = new Map(TABLE.split('\n').map((line) => [line.split('|', 1)[0]?.trim(), line.split('|').slice(1)]));

export const cells: readonly Cell[] = ENDINGS.flatMap((ending) =>
  DURABILITIES.flatMap((durability, column) =>
    SERVICES.map((service, place) => {
      const promised = rows.get(ending)?.[column]?.trim().split(/ +/)[place] as Promised;
      return { ending, durability, service, promised };
    }),
  ),
);

/** `SIGKILL × write-ahead × down`. */
export function titleOf({ ending, durability, service }: Cell): string {
  return [ending, durability, service].join(' × ');
}
