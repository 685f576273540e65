// Mistakes in payloads, redaction and attachments, each of which has to make a test fail.
const writer = 'src/run/json-writer.ts';
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
    title: 'values under the names of secrets are shown',
    file: redaction,
    find: 'return kind !== undefined && isSecret(kind, value, owner);',
    replace: 'return kind === undefined && isSecret(kind as never, value, owner);',
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
    title: 'tags are not searched',
    file: 'src/run/tags.ts',
    find: 'shownText(String(tag), rules, TAG)',
    replace: 'String(tag)',
    tests: ['test/run/redact.test.ts', 'test/run/run.test.ts'],
  },
  {
    title: 'metadata is not searched',
    file: 'src/run/metadata.ts',
    find: 'metadataJson(key, value, rules)',
    replace: 'metadataJson(key, value, { ...rules, redaction: undefined })',
    tests: ['test/run/redact.test.ts', 'test/run/run.test.ts', 'test/run/propagation.test.ts'],
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
    title: 'tags and metadata are handed down to runs that go elsewhere',
    file: 'src/run/run.ts',
    find: '&& handle.sink !== sink;',
    replace: '&& handle.sink === undefined;',
    tests: ['test/run/inheritance.test.ts'],
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
