import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { parametersOf, toolsOf } from '../../services/call-settings.ts';
import { CopyButton, type Pair, Pairs } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';
import { callCodeOf } from './call-code.ts';
import { JsonTree } from './json-tree.tsx';

/** Shows the parameters and the tool definitions of a model call, with buttons that copy the call as code. */
export function CallSettings({ run, inputs }: { run: RunDetails; inputs: unknown }): JSX.Element | null {
  const call = { ...run, inputs };
  const { model: _, tools: __, functions: ___, ...parameters } = useMemo(() => parametersOf(call), [run, inputs]);
  const tools = useMemo(() => toolsOf(parametersOf(call)), [run, inputs]);
  const code = useMemo(() => callCodeOf(call), [run, inputs]);
  const entries = Object.entries(parameters);
  const isShort = (value: unknown): boolean => typeof value !== 'object';
  const facts = entries
    .filter(([, value]) => isShort(value))
    .map(([name, value]): Pair => [name, visibleText(`${value}`)]);
  if (entries.length === 0 && tools.length === 0 && code === undefined) return null;
  return (
    <div class="settings">
      {facts.length > 0 && <Pairs class="facts" pairs={facts} />}
      {tools.length > 0 && (
        <details>
          <summary>
            {plural(tools.length, 'tool')}: {visibleText(tools.map(({ name }) => name).join(', '))}
          </summary>
          {tools.map(({ name, description, parameters: schema }, index) => (
            <div key={index} class="box">
              <p class="part-head">
                <strong>{visibleText(name)}</strong> <span class="note">{visibleText(description ?? '')}</span>
              </p>
              <JsonTree value={schema} isCompact />
            </div>
          ))}
        </details>
      )}
      {entries
        .filter(([, value]) => !isShort(value))
        .map(([name, value]) => (
          <details key={name}>
            <summary>{visibleText(name)}</summary>
            <JsonTree value={value} path={`$.${name}`} />
          </details>
        ))}
      {code !== undefined && (
        <p class="line small">
          Copy the call as
          <CopyButton text={() => code.typescript} label="Copy the call as TypeScript" word="TypeScript" />
          <CopyButton text={() => code.curl} label="Copy the call as a curl command" word="curl" />
        </p>
      )}
    </div>
  );
}
