/**
 * Whether a program is npm, npx, pnpm, Yarn or Corepack, judged by the name of its file. These programs start the
 * application in another process, and pass `NODE_OPTIONS` on to it.
 */
export function isPackageManager(file: string | undefined): boolean {
  return file !== undefined && PACKAGE_MANAGER.test(file);
}

/** Matches `npm-cli.js`, `npx`, `pnpm.cjs`, `yarn-4.9.2.cjs`, `corepack.js`. */
const PACKAGE_MANAGER = /[\\/](npm|npx|pnpm|pnpx|yarn|yarnpkg|corepack)(-cli|-[\d.]+)?(\.[cm]?js)?$/;
