import fc from 'fast-check';
import { turns } from '../../support/virtual-time.ts';
import { MOODS } from './service.ts';
import type { World } from './world.ts';

/** An action of the application or a fault, with its relative frequency. */
export interface Step {
  readonly name: string;
  readonly weight: number;
  readonly act: (world: World) => void | Promise<void>;
}

const step = (name: string, act: Step['act']): Step[] => [{ name, weight: 4, act }];

/** A step for each service, more often for the first. */
const service = (name: string, act: (world: World, at: number) => void, factor = 1): Step[] => [
  { name, weight: 3 * factor, act: (world) => act(world, 0) },
  { name: `${name}, the other service`, weight: factor, act: (world) => act(world, 1) },
];

export const STEPS: readonly Step[] = [
  ...service('start', (world, at) => world.start(at, 'run')),
  ...service('start of a child', (world, at) => world.start(at, 'child', true)),
  ...service('start of a poisoned run', (world, at) => world.start(at, 'poison')),
  ...service('start of a large run', (world, at) => world.start(at, 'large')),
  ...service('end of the oldest', (world, at) => world.end(at, 0)),
  ...service('end of the third', (world, at) => world.end(at, 2)),
  ...service('a whole run', (world, at) => world.whole(at)),
  ...service('five whole runs', (world, at) => {
    for (let count = 0; count < 5; count++) world.whole(at);
  }),
  ...service('flush', (world, at) => world.flush(at, 0)),
  ...service('a hundred flushes', (world, at) => world.flush(at, 700, 100)),
  ...step('turn', () => turns(2)),
  ...step('a quarter of a second', (world) => world.advance(250)),
  ...step('six seconds', (world) => world.advance(6_000)),
  ...step('a minute', (world) => world.advance(61_000)),
  ...step('six minutes', (world) => world.advance(360_000)),
  ...MOODS.flatMap((mood) => service(`service: ${mood}`, (world, at) => world.turnTo(at, mood), mood === 'up' ? 4 : 1)),
  ...step('disk full', (world) => world.setDiskFull(true)),
  ...step('disk free', (world) => world.setDiskFull(false)),
  ...step('disk wiped', (world) => world.wipe()),
  ...step('crash', (world) => world.crash()),
  ...step('close at once', (world) => world.close(0)),
  ...step('close within three seconds', (world) => world.close(3_000)),
  ...step('exit', (world) => world.exit()),
  ...step('SIGTERM', (world) => world.signal(3_000).then(() => world.exit())),
  ...step('SIGTERM that the process survives', (world) => world.signal(300)),
];

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(...STEPS.map((one) => ({ weight: one.weight, arbitrary: fc.constant(one) }))),
  { size: 'large', maxLength: 60 },
);

/** Runs the steps. Throws if an invariant is violated or a promised run is missing. */
export async function play(world: World, given: readonly Step[]): Promise<void> {
  for (const { act } of given) {
    await act(world);
    world.check();
  }
  await world.settle();
  const missing = world.missing();
  if (missing.length > 0) throw new Error(`missing: ${missing.join(', ')}`);
}
