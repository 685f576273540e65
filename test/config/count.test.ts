// How many settings there are to know. A new one needs a case that no other covers.
import { expect, it } from 'vitest';
import { OWN_VARIABLES } from '#src/config/environment.ts';
import { defaultLimits } from '#src/config/limits.ts';
import { errorCodes } from '#src/index.ts';
import { filesUnder, read } from '../package/repository.ts';

it('the documented environment variables are those that runspan reads, and there are at most 22, with the private RUNSPAN_DEV', () => {
  const pages = filesUnder('docs', '.md').map((path) => read(`docs/${path}`));
  const names = new Set(pages.flatMap((page) => page.match(/\bRUNSPAN_[A-Z_]+\b/g) ?? []));
  const documented = [...names].filter((name) => !Object.hasOwn(errorCodes, name));
  expect(documented.sort()).toEqual([...OWN_VARIABLES].sort());
  expect(documented.length).toBeLessThanOrEqual(22);
});

it('`configure` has 26 options, of which one has 12 limits', () => {
  expect(Object.keys(defaultLimits)).toHaveLength(12);
  const [, section = ''] = read('docs/reference/runspan.md').split('\n### ConfigureOptions\n');
  const [own = ''] = section.split('\n### ', 1);
  const [, hooks = ''] = read('docs/reference/runspan.md').split('\n### RunHooks\n');
  const inherited = hooks.split('\n### ', 1)[0]?.match(/^- \*\*/gm) ?? [];
  expect(own).toContain('`interface ConfigureOptions extends` [`RunHooks`](#runhooks)\n');
  expect((own.match(/^- \*\*/gm) ?? []).length + inherited.length).toBe(26);
});
