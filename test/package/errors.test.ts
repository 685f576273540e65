import { describe, expect, it } from 'vitest';
import { errorCodes } from '../../src/base/errors.ts';
import { comparable, type DiagnosticLine, diagnosticLines } from './diagnostic-lines.ts';
import { filesUnder, read } from './repository.ts';
import { sourceFacts } from './source-facts.ts';

const thrown = filesUnder('src', '.ts').flatMap((path) =>
  sourceFacts(path, read(`src/${path}`)).errorCodes.map((code) => ({ path, code })),
);

describe('the table of error codes', () => {
  it('is the one of docs/errors.md, code by code and word by word', () => {
    const rows = [...read('docs/errors.md').matchAll(/^\| `(RUNSPAN_\w+)` *\| (.+?) *\| (.+?) *\|$/gm)];
    expect(Object.fromEntries(rows.map(([, code, condition]) => [code, condition]))).toEqual(errorCodes);
  });

  it('has no code that nothing throws, and nothing is thrown that it does not have', () => {
    expect([...new Set(thrown.map(({ code }) => code))].sort()).toEqual(Object.keys(errorCodes).sort());
  });

  it('is written out where an error is made, so that the code can be searched for', () => {
    expect(thrown.filter(({ code }) => code === undefined)).toEqual([]);
  });

  it('names every code alike', () => {
    for (const code of Object.keys(errorCodes)) expect(code).toMatch(/^RUNSPAN(_[A-Z]+)+$/);
  });
});

describe('the codes of a file', () => {
  it('are found where errors are made, on either side of a condition, and missed where they are computed', () => {
    const codes = (argument: string) => sourceFacts('x.ts', `throw new RunspanError(${argument}, '');`).errorCodes;
    expect(codes(`'A'`)).toEqual(['A']);
    expect(codes(`busy ? 'A' : 'B'`)).toEqual(['A', 'B']);
    expect(codes('code')).toEqual([undefined]);
  });

  it('are all that it names where it has a class of its own', () => {
    const code = `class A extends RunspanError { constructor() { super(TABLE[5] ?? 'RUNSPAN_B', ''); } } const TABLE = { 5: 'RUNSPAN_A' };`;
    expect(sourceFacts('x.ts', code).errorCodes).toEqual(['RUNSPAN_B', 'RUNSPAN_A']);
    expect(sourceFacts('x.ts', code.replace('RunspanError', 'Error')).errorCodes).toEqual([]);
  });
});

describe('the tables of lines', () => {
  const printed = filesUnder('src', '.ts').flatMap((path) => diagnosticLines(path, read(`src/${path}`)));
  const documented = documentedLines(read('docs/errors.md'));
  const keyOf = ({ level, text }: Pick<DiagnosticLine, 'level' | 'text'>) => `${level} ${comparable(text)}`;

  it('have a row for every line of the source, with its level', () => {
    const known = new Set(documented.map(keyOf));
    const missing = printed.filter((line) => !known.has(keyOf(line)));
    const told = missing.map(({ level, text, path }) => {
      const ticks = text.includes('`') ? '``' : '`';
      return `docs/errors.md needs: | ${ticks}${text}${ticks} | ${level} | <cause> | <what to do> |  (src/${path})`;
    });
    expect(told).toEqual([]);
  });

  it('have no row for a line that nothing prints, and none twice', () => {
    const known = new Set(printed.map(keyOf));
    expect(documented.filter((line) => !known.has(keyOf(line))).map(({ text }) => text)).toEqual([]);
    expect(new Set(documented.map(keyOf)).size).toBe(documented.length);
  });

  it('say a cause for every line, and what to do unless it only informs', () => {
    const rows = documented.filter(({ cause, remedy, level }) => cause === '' || (remedy === '' && level !== 'debug'));
    expect(rows.map(({ text }) => text)).toEqual([]);
  });
});

describe('the lines of a file', () => {
  const linesIn = (code: string, path = 'x.ts') => diagnosticLines(path, code).map(({ level, text }) => [level, text]);

  it('are found in every form in which they are written', () => {
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

  it('have constants in the place of their names, but for one that may be empty', () => {
    const code = (value: string) => `function f() { const what = ${value}; diagnostics.warn(\`it is \${what}\`); }`;
    expect(linesIn(code(`isIt ? 'so' : \`as \${said}\``))).toEqual([
      ['warn', 'it is so'],
      ['warn', 'it is as <said>'],
    ]);
    expect(linesIn(code(`isIt ? 'so' : ''`))).toEqual([['warn', 'it is <what>']]);
  });

  it('are those of a teller where it is called, not where it prints', () => {
    const teller = 'function complain(problem) { diagnostics.warn(problem); }';
    const lines = linesIn(`complain(\`no \${name}\`); ${teller}`, 'export/settings.ts');
    expect(lines).toEqual([['warn', 'configuration: no <name>.']]);
  });

  it('are compared without the names of what is filled in', () => {
    expect(comparable('<count> <runs> dropped: <why><last>')).toBe(comparable('<number of runs> dropped: <meaning>'));
    expect(comparable('<a> dropped')).not.toBe(comparable('<a> sent'));
  });
});

/** The rows of the tables of lines; the first cell has one line or more, each as code. */
function documentedLines(page: string) {
  const rows = [...page.matchAll(/^\| (.+?) \| (error|warn|debug) \|(.*?)\|(.*?)\|$/gm)];
  return rows.flatMap(([, cell = '', level, cause = '', remedy = '']) =>
    [...cell.matchAll(/(`+)(.+?)\1/g)].map(([, , text = '']) => ({
      level: level as DiagnosticLine['level'],
      text,
      cause: cause.trim(),
      remedy: remedy.trim(),
    })),
  );
}
