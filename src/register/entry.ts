import { fieldsOf, parsedJson } from '../payload/fields.ts';
import { redact } from '../payload/redaction/redact.ts';
import { nodeModule } from '../platform/node.ts';
import type { Entry } from '../replay/fixture.ts';

/**
 * Returns how this process was started. Returns undefined for code on the command line, and if there is no package.json.
 */
export function entryOf(
  [, main, ...args]: readonly string[],
  execArgv: readonly string[],
  cwd: string,
): Entry | undefined {
  const { dirname, isAbsolute, join, relative, sep } = nodeModule('node:path');
  const { existsSync, readFileSync } = nodeModule('node:fs');
  const { fileURLToPath } = nodeModule('node:url');
  if (main === undefined || execArgv.some((option) => INLINE_CODE.test(option))) return undefined;
  // If the script belongs to an installed package, such as `next`, its project is in the working directory.
  let root = /[\\/]node_modules[\\/]/.test(main) ? cwd : dirname(main);
  while (!existsSync(join(root, 'package.json'))) {
    if (dirname(root) === root) return undefined;
    root = dirname(root);
  }
  const pathFrom = (base: string, path: string): string => relative(base, path).split(sep).join('/');
  const folder = pathFrom(root, cwd);
  // Node resolves the paths of its options from the working directory.
  const portable = (option: string): string => {
    const [, name = '', value = ''] = /^(--[^=]+=)?(.*)$/s.exec(option) ?? [];
    const path = value.startsWith('file:') ? fileURLToPath(value) : value;
    return isAbsolute(path) ? `${name}${pathFrom(cwd, path).replace(/^(?!\.)/, './')}` : option;
  };
  const { name } = fieldsOf(parsedJson(readFileSync(join(root, 'package.json'), 'utf8')));
  return {
    ...(typeof name === 'string' && { package: name }),
    script: pathFrom(root, main),
    args: withoutSecrets(args),
    options: withoutOwn(execArgv).map(portable),
    ...(folder !== '' && { folder }),
  };
}

/** Masks the values of arguments with the name of a secret: `--api-key x`, `--api-key=x` and `API_KEY=x`. */
function withoutSecrets(args: readonly string[]): string[] {
  const redaction = redact();
  const isSecret = (name: string, value: string): boolean =>
    redaction.names?.hides(name.replace(/^-+/, ''), value, {}) === true;
  return args.map((argument, index) => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(argument) ?? [];
    if (name !== undefined && value !== undefined && isSecret(name, value))
      return `${name}=${redaction.mask(value, [])}`;
    const previous = args[index - 1] ?? '';
    if (/^-[^=]+$/.test(previous) && isSecret(previous, argument)) return redaction.mask(argument, []);
    return redaction.maskNamed(argument, []);
  });
}

const INLINE_CODE = /^(-e|--eval|-p|-pe|--print)$|^--(eval|print|input-type)=|^--input-type$|data:/;
/** Matches options of a debugger and of the watch mode, whose value may be the next option. */
const OF_SESSION = /^--(inspect|watch)/;
const OF_SESSION_WITH_VALUE = /^--(inspect-port|watch-path)$/;

/** Removes the option that loads runspan, and those that are for one session. */
function withoutOwn(options: readonly string[]): string[] {
  const isOwn = (option = ''): boolean => /(^|=)runspan\/register$|[\\/]runspan[\\/].*register/.test(option);
  return options.filter((option, index) => {
    if (isOwn(option) || OF_SESSION.test(option) || OF_SESSION_WITH_VALUE.test(options[index - 1] ?? '')) return false;
    return !(option.startsWith('-') && isOwn(options[index + 1]));
  });
}
