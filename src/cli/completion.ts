import { Argument, type Command } from '@commander-js/extra-typings';
import type { CommandContext } from './command-line.ts';

/**
 * The completion script for each shell. Each script calls `runspan complete`. If `runspan complete` prints nothing, the
 * shell completes file names.
 */
const SCRIPTS = {
  bash: `_runspan() {
  local IFS=$'\\n'
  COMPREPLY=($(runspan complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _runspan runspan
`,
  zsh: `#compdef runspan
_runspan() {
  local -a items
  local tab=$'\\t'
  items=("\${(@f)$(runspan complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  items=("\${(@)items//:/\\\\:}")
  items=("\${(@)items/$tab/:}")
  if [[ -n $items[1] ]]; then _describe runspan items; else _files; fi
}
compdef _runspan runspan
`,
  fish: `function __runspan_complete
  set -l words (commandline -opc)
  runspan complete -- $words[2..] (commandline -ct) 2>/dev/null
end
complete -c runspan -n 'count (__runspan_complete) >/dev/null' -f -a '(__runspan_complete)'
`,
};

const HELP = `
Add one of these lines to the configuration of your shell:
  bash  source <(runspan completion bash)
  zsh   source <(runspan completion zsh)
  fish  runspan completion fish | source`;

export function define(command: Command, { stdout }: CommandContext): void {
  command
    .description('Prints a script that completes the commands and options of runspan in your shell.')
    .addArgument(new Argument('<shell>', 'shell that the script is for').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', HELP)
    .action((shell) => void stdout.write(SCRIPTS[shell]));
}

/**
 * Defines the hidden command `complete`. The last argument of `complete` is the word to complete, which may be empty.
 */
export function defineComplete(program: Command, { stdout }: CommandContext): void {
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action((words) => {
      for (const [value, description] of suggestions(program, words)) stdout.write(`${value}\t${description}\n`);
    });
}

type AnyCommand = Pick<Command, 'commands' | 'options' | 'registeredArguments' | 'createHelp'>;

function suggestions(program: AnyCommand, words: readonly string[]): (readonly [value: string, description: string])[] {
  const [current = '', ...before] = words.toReversed();
  if (before.includes('--')) return [];
  let command = program;
  for (const word of before.toReversed()) command = command.commands.find((one) => one.name() === word) ?? command;
  const option = command.options.find(({ long, required }) => required && long === before[0]);
  const withoutDescription = (value: string): [string, string] => [value, ''];
  let items: (readonly [string, string])[];
  if (option !== undefined) items = (option.argChoices ?? []).map(withoutDescription);
  else if (current.startsWith('-')) {
    items = command.options.map(({ long, description }) => [long ?? '', description]);
  } else {
    const commands = command.createHelp().visibleCommands(command as Command);
    items = [
      ...commands.map((one) => [one.name(), one.summary() || one.description()] as const),
      ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices.map(withoutDescription)),
    ];
  }
  return items.filter(([value]) => value.startsWith(current));
}
