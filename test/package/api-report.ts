import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { temporaryFolder } from '../support/folders.ts';

/**
 * Returns a function that creates the API report of a declaration file, without release tags, remarks on comments and
 * line numbers. All files are compiled together once.
 */
export function apiReporter(packageFolder: string, all: readonly string[]): (declarations: string) => string {
  let compilerState: CompilerState | undefined;
  return (declarations) => {
    const folder = temporaryFolder();
    try {
      const config = configuration(packageFolder, declarations, folder.path);
      compilerState ??= CompilerState.create(config, {
        additionalEntryPoints: all.map((path) => join(packageFolder, path)),
      });
      return reportOf(config, compilerState, folder.path);
    } finally {
      folder.remove();
    }
  };
}

function reportOf(config: ExtractorConfig, compilerState: CompilerState, folder: string): string {
  Extractor.invoke(config, {
    localBuild: true,
    compilerState,
    // The report contains the messages.
    messageCallback: (message) => {
      message.handled = true;
    },
  });
  const report = readFileSync(join(folder, 'report.api.md'), 'utf8');
  return report
    .replace(/^ *\/\/ (@public.*|\(undocumented\)|\(No @packageDoc.*)\n/gm, '')
    .replace(/^(\/\/ dist\/[^:]+):\d+:\d+/gm, '$1');
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
          // Reports types in signatures that the package does not export.
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
  });
}
