import { existsSync } from 'node:fs';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Returns options for starting Chromium without a screen. Throws an error with advice if it is not installed. */
export function chromiumOptions() {
  const executablePath = [process.env.CHROMIUM_PATH, ...PLACES].find((path) => path && existsSync(path));
  if (executablePath === undefined) {
    throw new Error('Chromium was not found: `apt-get install chromium`, or set CHROMIUM_PATH to where it is');
  }
  return { executablePath, args: ['--no-sandbox', '--disable-gpu'] };
}
