import { diagnostics } from '../base/diagnostics.ts';
import { addressOf, UnsafeFolder } from './spool-folder.ts';
import { codeOf } from './spool-fs.ts';
import type { SpoolHome } from './spool-home.ts';
import type { Leftover } from './spool-others.ts';
import type { Segment } from './spool-stock.ts';

/** Maximum number of destinations in one command. */
const DESTINATIONS_MAX = 5;

/** Log lines about a spool, each logged once. */
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

  /** Logs the command that delivers the runs of other destinations, quoted for a POSIX shell. */
  others({ spoolDir }: SpoolHome, endpoint: URL, leftovers: readonly Leftover[]): void {
    const count = leftovers.reduce((sum, { files }) => sum + files.length, 0);
    const hashes = [...new Set(leftovers.map(({ destinationHash }) => destinationHash))].slice(0, DESTINATIONS_MAX);
    const options = [
      '--dir',
      spoolDir,
      '--endpoint',
      addressOf(endpoint),
      ...hashes.flatMap((hash) => ['--from', hash]),
    ];
    const command = `runspan spool send ${options.map(shellWord).join(' ')}`;
    diagnostics.warnOnce(
      `spool ${spoolDir} others`,
      `spool: files for another endpoint, workspace or key wait in ${spoolDir} (${count}), and expire after limits.spoolAgeMs; ` +
        `if these settings have changed, set RUNSPAN_ENDPOINT to ${addressOf(endpoint)} and run \`${command}\`: it sends the runs to ${endpoint.origin} with ` +
        'RUNSPAN_API_KEY and RUNSPAN_WORKSPACE_ID, so leave out each --from of another program or tenant.',
    );
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

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function tellOf({ path }: Segment, what: string): void {
  diagnostics.warnOnce(`spool ${path} ${what}`, `spool: ${path} ${what}.`);
}
