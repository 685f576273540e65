import { describe, expect, it } from 'vitest';
import { errorCodes } from '#src/base/errors.ts';
import { comparable, type DiagnosticLine, diagnosticLines } from './diagnostic-lines.ts';
import { filesUnder, read } from './repository.ts';
import { sourceFacts } from './source-facts.ts';

const thrown = filesUnder('src', '.ts').flatMap((path) =>
  sourceFacts(path, read(`src/${path}`)).errorCodes.map((code) => ({ path, code })),
);

describe('the table of error codes', () => {
  it('equals the table of docs/errors.md', () => {
    const rows = [...read('docs/errors.md').matchAll(/^\| `(RUNSPAN_\w+)` *\| (.+?) *\| (.+?) *\|$/gm)];
    expect(Object.fromEntries(rows.map(([, code, condition]) => [code, condition]))).toEqual(errorCodes);
  });

  it('has exactly the codes that are thrown', () => {
    expect([...new Set(thrown.map(({ code }) => code))].sort()).toEqual(Object.keys(errorCodes).sort());
  });

  it('has codes that are literals at each error, so that they can be searched', () => {
    expect(thrown.filter(({ code }) => code === undefined)).toEqual([]);
  });

  it('has names of one form', () => {
    for (const code of Object.keys(errorCodes)) expect(code).toMatch(/^RUNSPAN(_[A-Z]+)+$/);
  });
});

describe('the codes of a file', () => {
  it('are found at each error, also in both branches of a condition, and are undefined if computed', () => {
    const codes = (argument: string) => sourceFacts('x.ts', `throw new RunspanError(${argument}, '');`).errorCodes;
    expect(codes(`'A'`)).toEqual(['A']);
    expect(codes(`busy ? 'A' : 'B'`)).toEqual(['A', 'B']);
    expect(codes('code')).toEqual([undefined]);
  });

  it('are all codes in the file if it has an error class', () => {
    const code = `class A extends RunspanError { constructor() { super(TABLE[5] ?? 'RUNSPAN_B', ''); } } const TABLE = { 5: 'RUNSPAN_A' };`;
    expect(sourceFacts('x.ts', code).errorCodes).toEqual(['RUNSPAN_B', 'RUNSPAN_A']);
    expect(sourceFacts('x.ts', code.replace('RunspanError', 'Error')).errorCodes).toEqual([]);
  });
});

describe('the tables of lines', () => {
  const printed = filesUnder('src', '.ts').flatMap((path) => diagnosticLines(path, read(`src/${path}`)));
  const documented = documentedLines(read('docs/errors.md'));
  const keyOf = ({ level, text }: Pick<DiagnosticLine, 'level' | 'text'>) => `${level} ${comparable(text)}`;

  it('have a row for each line of the source, with its level', () => {
    const known = new Set(documented.map(keyOf));
    const missing = printed.filter((line) => !known.has(keyOf(line)));
    const told = missing.map(({ level, text, path }) => {
      const ticks = text.includes('`') ? '``' : '`';
      return `docs/errors.md needs: | ${ticks}${text}${ticks} | ${level} | <cause> | <what to do> |  (src/${path})`;
    });
    expect(told).toEqual([]);
  });

  it('have no row for a missing line, and no row twice', () => {
    const known = new Set(printed.map(keyOf));
    expect(documented.filter((line) => !known.has(keyOf(line))).map(({ text }) => text)).toEqual([]);
    expect(new Set(documented.map(keyOf)).size).toBe(documented.length);
  });

  it('have a cause for each line, and advice except for debug lines', () => {
    const rows = documented.filter(({ cause, remedy, level }) => cause === '' || (remedy === '' && level !== 'debug'));
    expect(rows.map(({ text }) => text)).toEqual([]);
  });
});

describe('the lines of a file', () => {
  const linesIn = (code: string, path = 'x.ts') => diagnosticLines(path, code).map(({ level, text }) => [level, text]);

  it('are found in each form', () => {
    expect(linesIn(`diagnostics.error('gone');`)).toEqual([['error', 'gone']]);
    expect(linesIn(`diagnostics.warnOnce(place, \`\${a.b}: \` + \`got \${kindOf(value)}\`);`)).toEqual([
      ['warn', '<b>: got <value>'],
    ]);
    expect(linesIn(`diagnostics.debug(busy ? 'one' : 'other');`)).toEqual([
      ['debug', 'one'],
      ['debug', 'other'],
    ]);
    expect(linesIn('diagnostics.warn(message);')).toEqual([['warn', '<message>']]);
  });

  it('contain the values of constants, unless a value may be empty', () => {
    const code = (value: string) => `function f() { const what = ${value}; diagnostics.warn(\`it is \${what}\`); }`;
    expect(linesIn(code(`isIt ? 'so' : \`as \${said}\``))).toEqual([
      ['warn', 'it is so'],
      ['warn', 'it is as <said>'],
    ]);
    expect(linesIn(code(`isIt ? 'so' : ''`))).toEqual([['warn', 'it is <what>']]);
  });

  it('of a logging function are found at its calls', () => {
    const teller = 'function complain(problem) { diagnostics.warn(problem); }';
    const lines = linesIn(`complain(\`no \${name}\`); ${teller}`, 'config/options.ts');
    expect(lines).toEqual([['warn', 'configuration: no <name>.']]);
  });

  it('are compared without the names of placeholders', () => {
    expect(comparable('<count> <runs> dropped: <why><last>')).toBe(comparable('<number of runs> dropped: <meaning>'));
    expect(comparable('<a> dropped')).not.toBe(comparable('<a> sent'));
  });
});

/** Returns the rows of the tables. The first cell has one or more lines as code. */
function documentedLines(page: string) {
  const rows = [...page.matchAll(/^\| (.+?) \| (error|warn|info|debug) \|(.*?)\|(.*?)\|$/gm)];
  return rows.flatMap(([, cell = '', level, cause = '', remedy = '']) =>
    [...cell.matchAll(/(`+)(.+?)\1/g)].map(([, , text = '']) => ({
      level: level as DiagnosticLine['level'],
      text,
      cause: cause.trim(),
      remedy: remedy.trim(),
    })),
  );
}
