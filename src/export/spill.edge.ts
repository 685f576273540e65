/** Never created, because `durability` is always `memory`. */
export class Spill {}
