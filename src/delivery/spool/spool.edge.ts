/** Never used on edge runtimes, because `durability` is always `memory`. */
export class Spool {}
