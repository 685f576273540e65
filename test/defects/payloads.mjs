// Mistakes in payloads, redaction and attachments, each of which has to make a test fail.
const writer = 'src/run/json-writer.ts';
const output = 'src/run/json-output.ts';
const scan = 'src/run/json-scan.ts';
const redaction = 'src/run/redaction.ts';
const attachments = 'src/run/payload-attachments.ts';

export const defects = [
  {
    title: 'what is shared is taken for a cycle',
    file: writer,
    find: '    ancestors.pop();\n',
    replace: '',
    tests: ['test/run/json-writer.test.ts', 'test/run/serialize.test.ts'],
  },
  {
    title: 'a getter that throws costs the whole payload',
    file: writer,
    find: '        value = (object as Record<string, unknown>)[key];\n      } catch (thrown) {\n        value = threw(thrown);',
    replace:
      '        value = (object as Record<string, unknown>)[key];\n      } catch (thrown) {\n        throw thrown;',
    tests: ['test/run/json-writer.test.ts', 'test/run/serialize.test.ts'],
  },
  {
    title: 'lists have no bound on their items',
    file: writer,
    find: 'const kept = Math.min(listed, this.#rules.width);',
    replace: 'const kept = listed;',
    tests: ['test/run/json-writer.test.ts', 'test/run/serialize.test.ts'],
  },
  {
    title: 'nesting has no bound',
    file: writer,
    find: 'if (ancestors.length >= this.#rules.depth) {',
    replace: 'if (ancestors.length === -1) {',
    tests: ['test/run/json-writer.test.ts', 'test/run/serialize.test.ts'],
  },
  {
    title: 'backslashes in longer texts are taken for plain characters',
    file: output,
    find: 'const fromBackslash = word ^ 0x5c5c5c5c;',
    replace: 'const fromBackslash = word ^ 0x7f7f7f7f;',
    tests: ['test/run/json-output.test.ts'],
  },
  {
    title: 'JSON text goes on with what an earlier one has left behind',
    file: scan,
    find: '  bytes[end] = 0;\n',
    replace: '',
    tests: ['test/run/json-scan.test.ts'],
  },
  {
    title: 'JSON text of other scripts is looked over as far as the page goes',
    file: scan,
    find: 'if ((isWide ? 3 : 1) * text.length',
    replace: 'if (text.length',
    tests: ['test/run/json-scan.test.ts'],
  },
  {
    title: 'lists and objects may end with the bracket of the other',
    file: scan,
    find: 'if (code === closing) return true;',
    replace: 'if (code === CLOSING_BRACE || code === CLOSING_BRACKET) return true;',
    tests: ['test/run/json-scan.test.ts'],
  },
  {
    title: 'a text within another one is put where that begins',
    file: output,
    find: 'readonly #start = end;',
    replace: 'readonly #start = 0;',
    tests: ['test/run/json-output.test.ts'],
  },
  {
    title: 'what no longer fits takes the place of what did not before',
    file: output,
    find: "this.#text += page.toString('latin1', this.#start, end);",
    replace: "this.#text = page.toString('latin1', this.#start, end);",
    tests: ['test/run/json-output.test.ts'],
  },
  {
    title: 'a key that came after another once is taken for the next one always',
    file: 'src/run/key-forms.ts',
    find: 'if (next !== undefined && next.key === key) return next;',
    replace: 'if (next !== undefined) return next;',
    tests: ['test/run/key-forms.test.ts'],
  },
  {
    title: 'values under the names of secrets are shown',
    file: redaction,
    find: 'return this.names?.hides(key, value, owner) === true;',
    replace: 'return this.names?.hides(key, value, owner) === undefined;',
    tests: ['test/run/redact.test.ts', 'test/run/secret-names.test.ts'],
  },
  {
    title: 'a replacement that throws shows what it was to hide',
    file: redaction,
    find: '    } catch {\n      throw new RedactionFailure();',
    replace: '    } catch {\n      return found;',
    tests: ['test/run/redact.test.ts'],
  },
  {
    title: 'a replacement that answers with a promise is taken for text',
    file: redaction,
    find: "if (typeof answer === 'string') return answer;",
    replace: 'return String(answer);',
    tests: ['test/run/redact.test.ts'],
  },
  {
    title: 'a secret across a cut survives in part',
    file: 'src/run/truncate.ts',
    find: 'const MARGIN = 65_536;',
    replace: 'const MARGIN = 0;',
    tests: ['test/run/redact.test.ts'],
  },
  {
    title: 'errors are not searched for what is to be hidden',
    file: 'src/run/run.ts',
    find: 'new ErrorText(error, this.#capture.payload.redaction)',
    replace: 'new ErrorText(error)',
    tests: ['test/run/redact.test.ts', 'test/run/run.test.ts'],
  },
  {
    title: 'the names of attachments are not searched',
    file: 'src/run/run-attachments.ts',
    find: 'const shown = shownText(name, this.#rules, ATTACHMENT);',
    replace: 'const shown = name;',
    tests: ['test/run/redact.test.ts', 'test/run/run-attachments.test.ts', 'test/run/run.test.ts'],
  },
  {
    title: 'a redaction that is none shows everything',
    file: 'src/run/default-redaction.ts',
    find: '  return hideAll;',
    replace: '  return defaultRedaction;',
    tests: ['test/run/redact.test.ts', 'test/export/settings.test.ts'],
  },
  {
    title: 'the same bytes are attached twice',
    file: attachments,
    find: '    this.#markers.set(source, marker);',
    replace: '',
    tests: ['test/run/payload-attachments.test.ts'],
  },
  {
    title: 'attachments have no bound on their bytes',
    file: attachments,
    find: 'if (this.#bytes + size <= bytesLeft &&',
    replace: 'if (size >= 0 && bytesLeft >= 0 &&',
    tests: ['test/run/payload-attachments.test.ts'],
  },
  {
    title: 'a data URI stays in its payload',
    file: writer,
    find: 'this.#attachments?.attachText(given) ?? given',
    replace: 'given',
    tests: ['test/run/payload-attachments.test.ts', 'test/attachments.test.ts'],
  },
  {
    title: 'attachments of a payload that could not be hidden are sent',
    file: 'src/run/serialize.ts',
    find: '    attachments?.clear();\n',
    replace: '',
    tests: ['test/run/redact.test.ts', 'test/run/payload-attachments.test.ts'],
  },
];
