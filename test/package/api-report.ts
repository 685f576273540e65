import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { temporaryFolder } from '../support/folders.ts';

/** The report of one emitted declaration file, without what says nothing of them: release
 * tags, remarks on comments, line numbers. */
export function apiReport(packageFolder: string, declarations: string): string {
  const folder = temporaryFolder();
  try {
    Extractor.invoke(configuration(packageFolder, declarations, folder.path), {
      localBuild: true,
      // Remarks go into the report; none is printed.
      messageCallback: (message) => {
        message.handled = true;
      },
    });
    const report = readFileSync(join(folder.path, 'report.api.md'), 'utf8');
    return report
      .replace(/^ *\/\/ (@public.*|\(undocumented\)|\(No @packageDoc.*)\n/gm, '')
      .replace(/^(\/\/ dist\/[^:]+):\d+:\d+/gm, '$1');
  } finally {
    folder.remove();
  }
}

function configuration(packageFolder: string, declarations: string, reportFolder: string): ExtractorConfig {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable', 'esnext.decorators'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    skipLibCheck: true,
  };
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(packageFolder, 'package.json'),
    configObject: {
      newlineKind: 'lf',
      projectFolder: packageFolder,
      mainEntryPointFilePath: join(packageFolder, declarations),
      compiler: { overrideTsconfig: { compilerOptions, files: [declarations] } },
      apiReport: {
        includeForgottenExports: true,
        enabled: true,
        reportFileName: 'report.api.md',
        reportFolder,
        reportTempFolder: join(reportFolder, 'new'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.None },
          // A type in a signature that users cannot name: it is remarked on, and reported like the others.
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
  });
}
