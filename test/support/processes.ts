// Simulates processes that run one after another with the same disk and service. Import `virtual-timers.ts` first.
import type { SpoolFs } from '#src/delivery/spool/fs.ts';
import { advance, type Delivery, delivery, type Setup, until } from './delivery.ts';
import { MEMORY_SPOOL, MemoryDisk } from './memory-fs.ts';
import { type ScriptedService, scriptedService } from './scripted-service.ts';
import { virtualClock } from './virtual-timers.ts';

/** Every ended process counts as dead after this time without a heartbeat. */
const SILENCE_MS = 120_000;

export interface Process extends Delivery {
  /** Ends the process immediately. It no longer reaches the disk or the service. */
  kill(): void;
  exit(): void;
}

export interface Machine {
  readonly disk: MemoryDisk;
  /** Starts a process, by default with the durability `spill`. */
  start(setup?: Setup, namespace?: string): Promise<Process>;
  /** Starts a process that records one run and delivers all runs on the disk. */
  deliverRest(setup?: Setup): Promise<Process>;
  segments(): string[];
}

/** `throughFs` wraps the file system of each process. */
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
      // Requests of an ended process get no response.
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
      // Owners that were alive are checked again after a minute.
      await advance(61_000);
      await until(() => {
        const { created, recovered, sent, dropped } = last.stats();
        return created + recovered === sent + dropped;
      });
      return last;
    },
  };
}
