// Processes that follow each other on one disk in memory, before one service. Import `virtual-timers.ts` first, as for `delivery.ts`.
import type { SpoolFs } from '../../src/export/spool/fs.ts';
import { advance, type Delivery, delivery, type Setup, until } from './delivery.ts';
import { MEMORY_SPOOL, MemoryDisk } from './memory-fs.ts';
import { type ScriptedService, scriptedService } from './scripted-service.ts';
import { virtualClock } from './virtual-timers.ts';

/** After which a process that is gone is known to be gone, by whatever it is told. */
const SILENCE_MS = 120_000;

/** An exporter of a process of its own. */
export interface Process extends Delivery {
  /** The process dies: nothing that is left of it reaches the disk or the service. */
  kill(): void;
  /** The process ends by `process.exit`. */
  exit(): void;
}

export interface Machine {
  readonly disk: MemoryDisk;
  /** A process with the durability `spill`, unless options name another. */
  start(setup?: Setup, namespace?: string): Promise<Process>;
  /** A process that records one run, and delivers what it finds on disk. */
  deliverRest(setup?: Setup): Promise<Process>;
  /** The files with runs. */
  segments(): string[];
}

/** `throughFs` stands between the processes and the disk. */
export function machine(throughFs: (fs: SpoolFs) => SpoolFs = (fs) => fs): Machine {
  const disk = new MemoryDisk();
  let service: ScriptedService | undefined;
  const start: Machine['start'] = async (setup = {}, namespace = '1') => {
    const { fs, die } = disk.process(namespace);
    service ??= await scriptedService(undefined, setup.info);
    service.reply = setup.reply ?? (() => 202);
    const made = await delivery({
      service,
      ...setup,
      options: { durability: 'spill', spoolDir: MEMORY_SPOOL, ...setup.options },
      time: { fs: throughFs(fs), wallMs: () => disk.nowMs + virtualClock.nowMs, ...setup.time },
    });
    const leave = (): void => {
      die();
      virtualClock.clear();
      // Requests of a process that is gone get no answer.
      made.service.reply = () => 'hold';
      disk.nowMs += SILENCE_MS;
    };
    return Object.assign(made, {
      kill: leave,
      exit: () => {
        made.exporter.endProcess();
        leave();
      },
    });
  };
  return {
    disk,
    start,
    segments: () => disk.files.filter((path) => path.endsWith('.seg')),
    async deliverRest(setup) {
      const last = await start(setup);
      last.whole('last');
      await last.flush();
      // Whoever was alive a moment ago is looked at again after a minute.
      await advance(61_000);
      await until(() => {
        const { created, recovered, sent, dropped } = last.stats();
        return created + recovered === sent + dropped;
      });
      return last;
    },
  };
}
