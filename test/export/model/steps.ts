import fc from 'fast-check';
import { turns } from '../../support/virtual-time.ts';
import { MOODS } from './service.ts';
import type { World } from './world.ts';

/** How often each step was reached. */
export type Reached = Map<string, number>;

type Act = (world: World) => void | Promise<void>;

class Step implements fc.AsyncCommand<object, World> {
  readonly #name: string;
  readonly #act: Act;
  readonly #reached: Reached;

  constructor(name: string, reached: Reached, act: Act) {
    this.#name = name;
    this.#act = act;
    this.#reached = reached;
  }

  check(): boolean {
    return true;
  }

  async run(_: object, world: World): Promise<void> {
    this.#reached.set(this.#name, (this.#reached.get(this.#name) ?? 0) + 1);
    await this.#act(world);
    world.check();
  }

  toString(): string {
    return this.#name;
  }
}

/** Sequences of what may happen; each step that there is stands in `reached`, with how often it was gone through. */
export function steps(reached: Reached): fc.Arbitrary<Iterable<fc.AsyncCommand<object, World>>> {
  const step = (name: string, act: Act) => {
    reached.set(name, reached.get(name) ?? 0);
    return fc.constant(new Step(name, reached, act));
  };
  const service = (name: string, act: (world: World, service: number) => void | Promise<void>) => {
    const first = step(name, (world) => act(world, 0));
    const second = step(`${name}, the other service`, (world) => act(world, 1));
    return fc.oneof({ weight: 3, arbitrary: first }, { weight: 1, arbitrary: second });
  };
  const commands: fc.Arbitrary<Step>[] = [
    service('start', (world, at) => world.start(at, 'run')),
    service('start of a child', (world, at) => world.start(at, 'child', true)),
    service('start of a poisoned run', (world, at) => world.start(at, 'poison')),
    service('start of a large run', (world, at) => world.start(at, 'large')),
    service('end of the oldest', (world, at) => world.end(at, 0)),
    service('end of one of them', (world, at) => world.end(at, 2)),
    service('a whole run', (world, at) => world.whole(at)),
    service('five whole runs', (world, at) => {
      for (let count = 0; count < 5; count++) world.whole(at);
    }),
    service('flush', (world, at) => world.flush(at, 0)),
    service('a hundred flushes', (world, at) => world.flush(at, 700, 100)),
    step('turn', () => turns(2)),
    step('a quarter of a second', (world) => world.advance(250)),
    step('six seconds', (world) => world.advance(6_000)),
    step('a minute', (world) => world.advance(61_000)),
    step('six minutes', (world) => world.advance(360_000)),
    ...MOODS.map((mood) => service(`service: ${mood}`, (world, at) => world.turnTo(at, mood))),
    // Mostly it is up.
    ...Array.from({ length: 3 }, () => service('service: up', (world, at) => world.turnTo(at, 'up'))),
    step('disk full', (world) => world.setDiskFull(true)),
    step('disk free', (world) => world.setDiskFull(false)),
    step('disk wiped', (world) => world.wipe()),
    step('crash', (world) => world.crash()),
    step('close at once', (world) => world.close(0)),
    step('close within three seconds', (world) => world.close(3_000)),
    step('exit', (world) => world.exit()),
  ];
  return fc.commands(commands, { size: 'large', maxCommands: 60 });
}
