import { isDestination } from '../export/spool/directory.ts';
import { quoted } from './terminal-text.ts';
import { lastOf, readWords, webAddress } from './words.ts';

/** `runspan spool …` */
export interface SpoolInvocation {
  readonly kind: 'spool';
  readonly action: 'list' | 'send' | 'purge';
  /** The folder; the default's when it is not given. */
  readonly dir: string | undefined;
  /** Only what is for this endpoint; everything when it is not given. */
  readonly endpoint: URL | undefined;
  /** Folder names of other destinations whose runs are also sent. */
  readonly from: readonly string[];
  /** Whether to also send files that were set aside but are still readable. */
  readonly includesBad: boolean;
  /** Whether to delete the files instead of only listing them. */
  readonly isConfirmed: boolean;
  /** Whether to include the files of running processes. */
  readonly isAll: boolean;
}

type Parsed =
  | SpoolInvocation
  | { readonly kind: 'help'; readonly topic: 'spool' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'spool' };

export const spoolUsage = `Usage: runspan spool list [--dir folder] [--endpoint url]
       runspan spool send [--dir folder] [--endpoint url] [--from destination] [--bad]
       runspan spool purge [--dir folder] [--endpoint url] [--all] --yes

Runs that could not be delivered yet wait on disk, where durability is spill or write-ahead. The
next process with the same endpoint and workspace delivers what dead ones have left; list shows
what there is, send delivers it now, to the service that the environment names, purge deletes it.

Options:
  --dir <folder>    where the spool is (default RUNSPAN_SPOOL_DIR, else ~/.runspan/spool)
  --endpoint <url>  only what is for this endpoint, with RUNSPAN_WORKSPACE_ID, else RUNSPAN_API_KEY
                    (send and purge default to RUNSPAN_ENDPOINT; without it, purge deletes all)
  --from <hash>     send: also runs recorded for another endpoint, workspace or key; spool list
                    shows the hash of each destination; may be given more than once
  --bad             send: also readable files that were set aside
  --yes             purge: delete; without it, only say what would be deleted
  --all             purge: also the files of processes that are alive
  -h, --help        print this

Exit code:
  0; 1 when the folder cannot be read, something could not be delivered or deleted, or --yes is
  missing; 2 for a mistake in the arguments
`;

const FROM_EXPECTED = 'expected --from to be a destination that runspan spool list shows';

const ENDPOINT_EXPECTED = 'expected --endpoint to be an http or https address';

/** Reads the arguments after `runspan spool`. Never throws. */
export function parseSpool(argv: readonly string[]): Parsed {
  const words = readWords(argv, {
    texts: ['dir', 'endpoint', 'from'],
    flags: ['bad', 'yes', 'all'],
    missing: { dir: 'expected --dir to be a folder', endpoint: ENDPOINT_EXPECTED, from: FROM_EXPECTED },
  });
  if ('wrong' in words) return mistake(words.wrong);
  const { flags } = words;
  const [action, another] = words.positionals;
  const endpoint = webAddress(lastOf(words, 'endpoint'));
  if (another !== undefined) return mistake(`unexpected ${quoted(another)}`);
  if (endpoint === undefined && words.values.has('endpoint')) return mistake(ENDPOINT_EXPECTED);
  if (flags.has('help')) return { kind: 'help', topic: 'spool' };
  if (action === undefined) return mistake('expected list, send or purge after spool');
  if (action !== 'list' && action !== 'send' && action !== 'purge')
    return mistake(`unknown command ${quoted(`spool ${action}`)}`);
  const [isConfirmed, isAll] = [flags.has('yes'), flags.has('all')];
  if (action !== 'purge' && (isConfirmed || isAll)) return mistake('--yes and --all belong to spool purge');
  const [from, includesBad] = [words.values.get('from') ?? [], flags.has('bad')];
  if (!from.every(isDestination)) return mistake(FROM_EXPECTED);
  if (action !== 'send' && (includesBad || from.length > 0)) return mistake('--from and --bad belong to spool send');
  return { kind: 'spool', action, dir: lastOf(words, 'dir'), endpoint, from, includesBad, isConfirmed, isAll };
}

function mistake(message: string): Parsed {
  return { kind: 'mistake', message, topic: 'spool' };
}
