import { existsSync } from 'node:fs';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

// Playwright's list, which this switch replaces. Then three features of the browser's window, which nothing here shows:
// they start two more processes for each context and double the CPU time of the tests.
const DISABLED_FEATURES = [
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
  'SpareRendererForSitePerProcess',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxPopup',
].join();

/** Returns options for starting Chromium without a screen. Throws an error with advice if it is not installed. */
export function chromiumOptions() {
  const executablePath = [process.env.CHROMIUM_PATH, ...PLACES].find((path) => path && existsSync(path));
  if (executablePath === undefined) {
    throw new Error('Chromium was not found: `apt-get install chromium`, or set CHROMIUM_PATH to where it is');
  }
  return { executablePath, args: ['--no-sandbox', '--disable-gpu', `--disable-features=${DISABLED_FEATURES}`] };
}
