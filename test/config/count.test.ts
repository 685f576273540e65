// How many settings there are to know. A new one needs a case that no other covers.
import { expect, it } from 'vitest';
import { OWN_VARIABLES } from '#src/config/environment.ts';
import { errorCodes } from '#src/index.ts';
import { filesUnder, read } from '../package/repository.ts';

/** Variables with which commands configure the programs that they start. */
const PRIVATE = /^RUNSPAN_(?:DEV|PROGRAM|EXCHANGES|RECORD_BODY|START_DELAY_MS|SET_REPORT|SET_LIVE)$/;

it('the documented environment variables are those that runspan reads, and there are at most 22 with RUNSPAN_DEV', () => {
  const pages = filesUnder('docs', '.md').map((path) => read(`docs/${path}`));
  const names = new Set(pages.flatMap((page) => page.match(/\bRUNSPAN_[A-Z_]+\b/g) ?? []));
  const documented = [...names].filter((name) => !Object.hasOwn(errorCodes, name) && !PRIVATE.test(name));
  expect(documented.sort()).toEqual(OWN_VARIABLES.filter((name) => !PRIVATE.test(name)).sort());
  expect(documented.length + 1).toBeLessThanOrEqual(22);
});

it('`configure` has 25 options', () => {
  const [, section = ''] = read('docs/reference/runspan.md').split('\n### ConfigureOptions\n');
  const [own = ''] = section.split('\n### ', 1);
  const [, hooks = ''] = read('docs/reference/runspan.md').split('\n### RunHooks\n');
  const inherited = hooks.split('\n### ', 1)[0]?.match(/^- \*\*/gm) ?? [];
  expect(own).toContain('`interface ConfigureOptions extends` [`RunHooks`](#runhooks)\n');
  expect((own.match(/^- \*\*/gm) ?? []).length + inherited.length).toBe(25);
});
