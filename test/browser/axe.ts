import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { root } from '../support/folders.ts';

const source = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

type ColorScheme = 'light' | 'dark';

/** Expects that a view has no violation of WCAG in these colours, and is not wider than the screen. */
export async function expectAccessible(
  page: Page,
  view: unknown,
  colorSchemes: readonly ColorScheme[] = ['light', 'dark'],
): Promise<void> {
  for (const colorScheme of colorSchemes) {
    await page.emulateMedia({ colorScheme });
    expect({ view, colorScheme, found: await axeViolations(page, colorScheme) }).toEqual({
      view,
      colorScheme,
      found: [],
    });
  }
  await expectToFit(page, view);
}

export async function expectToFit(page: Page, view: unknown): Promise<void> {
  const fits = (): Promise<unknown> => page.evaluate('document.documentElement.scrollWidth <= innerWidth');
  await expect.poll(async () => ({ view, fits: await fits() })).toEqual({ view, fits: true });
}

/**
 * Returns the violations of WCAG that axe finds on a page. In dark colours, checks only the colour rules, because all other
 * rules have the same result as in light colours.
 */
async function axeViolations(page: Page, colorScheme: ColorScheme): Promise<string[]> {
  // The debugger runs this, so the page's security policy does not apply.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(source);
  const runOnly = colorScheme === 'dark' ? ['color-contrast', 'link-in-text-block'] : undefined;
  const options = JSON.stringify({ resultTypes: ['violations'], runOnly });
  const { violations } = (await page.evaluate(`axe.run(${options})`)) as { violations: readonly Violation[] };
  return violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 3).map((node) => `${id}: ${node.html}\n${node.failureSummary}`),
  );
}
