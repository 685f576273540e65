/**
 * Returns whether a file is npm, npx, pnpm, Yarn or Corepack, based on the file name. These programs start the
 * application in another process, which inherits `NODE_OPTIONS`.
 */
export function isPackageManager(file: string | undefined): boolean {
  return file !== undefined && PACKAGE_MANAGER.test(file);
}

/** Matches file names such as `npm-cli.js`, `npx`, `pnpm.cjs`, `yarn-4.9.2.cjs` and `corepack.js`. */
const PACKAGE_MANAGER = /[\\/](npm|npx|pnpm|pnpx|yarn|yarnpkg|corepack)(-cli|-[\d.]+)?(\.[cm]?js)?$/;
