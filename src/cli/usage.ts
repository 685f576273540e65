import { DEFAULT_PORT } from './arguments.ts';

/** What `--help` prints. */
export const usage: Readonly<Record<'runspan' | 'dev', string>> = {
  runspan: `Usage: runspan <command> [options]

Commands:
  dev [--port ${DEFAULT_PORT}] [-- command args]
                 start a receiver on this machine and draw the traces that arrive

Options:
  -h, --help     print this; with a command, what there is to say of it
  -v, --version  print the version
`,
  dev: `Usage: runspan dev [--port ${DEFAULT_PORT}] [-- command args]

Starts a receiver on 127.0.0.1 and draws each trace in the terminal when it has finished. With a
command, runs it with an environment that sends its runs to the receiver, and ends as the command
ends; without one, runs until Ctrl-C. Runs are kept in memory.

Options:
  --port <n>  where to listen; 0 takes any free port (default ${DEFAULT_PORT})
  -h, --help  print this

The command gets RUNSPAN_ENDPOINT and RUNSPAN_TRACING, and for programs that use the langsmith
package LANGSMITH_ENDPOINT, LANGSMITH_TRACING and, when it is unset, LANGSMITH_API_KEY.

Exit code:
  that of the command, or its signal; 0 after Ctrl-C without a command; 1 when the receiver cannot
  listen; 2 for a mistake in the arguments; 126 and 127 when the command cannot be started
`,
};
