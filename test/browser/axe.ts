import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { root } from '../support/folders.ts';

const source = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/**
 * Returns the violations of WCAG that axe finds on a page and rates with these impacts. In dark colours, checks only the
 * colour rules, because all other rules have the same result as in light colours.
 */
export async function axeViolations(page: Page, colorScheme: 'light' | 'dark', impacts = /./): Promise<string[]> {
  // The debugger runs this, so the page's security policy does not apply.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(source);
  const runOnly = colorScheme === 'dark' ? ['color-contrast', 'link-in-text-block'] : undefined;
  const options = JSON.stringify({ resultTypes: ['violations'], runOnly });
  const { violations } = (await page.evaluate(`axe.run(${options})`)) as { violations: readonly Violation[] };
  return violations
    .filter(({ impact }) => impacts.test(impact))
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => `${id}: ${node.html}\n${node.failureSummary}`));
}
