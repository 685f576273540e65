/**
 * A cell is one table of the full benchmark: some drivers, one kind of work, one kind of service. It has a `name`, the `group`
 * of the page where it stands, a `title`, the `drivers` in the order of the table, how many `rounds`, and `jobOf(driver)`:
 * what each is to do, as `runDriver` takes it. One that measures no drivers has a `section` instead, which does it all.
 */
import { DRIVER_NAMES, turnsOf, warmupTurnsOf } from '../drivers.mjs';

export const FAST = ['limit', 'traceable', 'processor', 'otlp-json', 'otlp-protobuf', 'langfuse'];
export const ALL = DRIVER_NAMES.filter((name) => name !== 'off');

/** A cell whose drivers go as fast as they can. */
export function closedCell(name, group, title, { plan, behaviour, env, drivers = ALL, rounds = 3 }) {
  const warmupTurns = plan.warmupTurns ?? Math.ceil(plan.turns / 2);
  const jobOf = (driver) => ({
    plan: {
      ...plan,
      turns: turnsOf(driver, plan.turns),
      warmupTurns: warmupTurnsOf(driver, warmupTurns),
    },
    behaviour,
    env,
  });
  return { name, group, title, drivers, rounds, jobOf };
}
