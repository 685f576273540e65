import { diagnostics } from '../base/diagnostics.ts';
import { UnsafeFolder } from './spool-folder.ts';
import { codeOf } from './spool-fs.ts';
import type { SpoolHome } from './spool-home.ts';
import type { Segment } from './spool-stock.ts';

/** What the log is told of a spool, each thing once. */
export const spoolNotice = {
  full({ spoolDir, path }: SpoolHome, bytesMax: number): void {
    diagnostics.warnOnce(
      `spool full ${path}`,
      `spool: ${spoolDir} is at its limit of ${bytesMax} bytes; runs are kept in memory only until some of it is delivered.`,
    );
  },

  notWritten(home: SpoolHome, thrown: unknown): void {
    tell(home, 'write', thrown, 'runs are kept in memory only, and it is tried again every minute');
  },

  notRead(home: SpoolHome, thrown: unknown): void {
    tell(home, 'read', thrown, 'what is there is kept, and it is tried again every minute');
  },

  damaged(segment: Segment): void {
    tellOf(segment, 'is damaged; what could be read of it is delivered, and the file is set aside');
  },

  later(segment: Segment): void {
    tellOf(segment, 'was written by a later version of runspan and is left as it is; upgrade, or delete it');
  },
};

function tell(
  { spoolDir, destination }: SpoolHome,
  verb: 'read' | 'write',
  thrown: unknown,
  consequence: string,
): void {
  const problem =
    thrown instanceof UnsafeFolder
      ? `${thrown.message} and is not used; set spoolDir to a folder of your own`
      : `cannot ${verb} in ${spoolDir} (${codeOf(thrown)})`;
  diagnostics.warnOnce(`spool ${destination.join('/')} ${problem}`, `spool: ${problem}; ${consequence}.`);
}

function tellOf({ path }: Segment, what: string): void {
  diagnostics.warnOnce(`spool ${path} ${what}`, `spool: ${path} ${what}.`);
}
