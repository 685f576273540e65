/**
 * Returns whether a program is never recorded, based on its file name. Package managers start the application in another
 * process, which inherits `NODE_OPTIONS`. Earlier versions of Claude Code run in Node, and the program that has started
 * Claude Code records its calls.
 */
export function isUnrecordedProgram(file: string | undefined): boolean {
  return file !== undefined && (PACKAGE_MANAGER.test(file) || CLAUDE_CODE.test(file));
}

/** Matches file names such as `npm-cli.js`, `npx`, `pnpm.cjs`, `yarn-4.9.2.cjs` and `corepack.js`. */
const PACKAGE_MANAGER = /[\\/](npm|npx|pnpm|pnpx|yarn|yarnpkg|corepack)(-cli|-[\d.]+)?(\.[cm]?js)?$/;
const CLAUDE_CODE = /[\\/]claude-agent-sdk[\\/]cli\.js$/;
