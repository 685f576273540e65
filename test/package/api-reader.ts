import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { temporaryFolder } from '../support/folders.ts';
import type { Declaration } from './reference.ts';

export interface Api {
  /** The names with their signatures, without release tags, remarks on comments and line numbers. */
  readonly report: string;
  /** The names with their comments. */
  readonly model: Declaration;
}

/** Returns a function that reads the API of a declaration file. All files are compiled together once. */
export function apiReader(packageFolder: string, all: readonly string[]): (declarations: string) => Api {
  let compilerState: CompilerState | undefined;
  return (declarations) => {
    const folder = temporaryFolder();
    try {
      const config = configuration(packageFolder, declarations, folder.path);
      compilerState ??= CompilerState.create(config, {
        additionalEntryPoints: all.map((path) => join(packageFolder, path)),
      });
      return apiOf(config, compilerState, folder.path);
    } finally {
      folder.remove();
    }
  };
}

function apiOf(config: ExtractorConfig, compilerState: CompilerState, folder: string): Api {
  Extractor.invoke(config, {
    localBuild: true,
    compilerState,
    // The report contains the messages.
    messageCallback: (message) => {
      message.handled = true;
    },
  });
  const report = readFileSync(join(folder, 'report.api.md'), 'utf8');
  return {
    report: report
      .replace(/^ *\/\/ (@public.*|\(undocumented\)|\(No @packageDoc.*)\n/gm, '')
      .replace(/^(\/\/ dist\/[^:]+):\d+:\d+/gm, '$1'),
    model: JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8')),
  };
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
      docModel: { enabled: true, apiJsonFilePath: join(reportFolder, 'model.json') },
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
