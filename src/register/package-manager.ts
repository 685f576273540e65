/**
 * Returns whether a file is npm, npx, pnpm, Yarn, Corepack or an earlier Claude Code, based on the file name. Package
 * managers start the application in another process, which inherits `NODE_OPTIONS`. The program that has started Claude
 * Code records its calls.
 */
export function isPackageManager(file: string | undefined): boolean {
  return file !== undefined && PACKAGE_MANAGER.test(file);
}

/** Matches file names such as `npm-cli.js`, `npx`, `pnpm.cjs`, `yarn-4.9.2.cjs` and `corepack.js`. */
const PACKAGE_MANAGER =
  /[\\/](npm|npx|pnpm|pnpx|yarn|yarnpkg|corepack)(-cli|-[\d.]+)?(\.[cm]?js)?$|[\\/]claude-agent-sdk[\\/]cli\.js$/;
