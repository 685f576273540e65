import { useSignal } from '@preact/signals';
import { Lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { IconButton } from './icon.tsx';
import { Text, visible } from './text.tsx';

/** Maximum nesting depth. Deeper content is shown as source text. */
const DEPTH_MAX = 24;
/** Time for which a button confirms that it has copied the text. */
const DONE_MS = 2_000;

/** Renders Markdown as elements, from the lexer's tokens. HTML is shown as text, and pictures become links. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const children = useMemo(() => elements(tokensOf(text), 0), [text]);
  return <div class="markdown">{children}</div>;
}

function tokensOf(text: string): Token[] {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    // The lexer throws if the text is nested very deeply.
    return [{ type: 'paragraph', raw: text, text, tokens: [{ type: 'text', raw: text, text }] }];
  }
}

function elements(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => element(token as Tokens.Generic, depth));
}

function element(token: Tokens.Generic, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return <Text value={token.raw} />;
  const children = (): ComponentChildren => elements(token.tokens, depth + 1);
  switch (token.type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return null;
    case 'heading':
      // Headings in an answer are rendered as paragraphs, because heading elements would mix with the page's own
      // headings.
      return (
        <p class={`heading heading-${token.depth}`} dir="auto">
          {children()}
        </p>
      );
    case 'paragraph':
      return <p dir="auto">{children()}</p>;
    case 'code':
      return (
        <div class="code">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: The keyboard must reach an element that scrolls. */}
          <pre tabIndex={0}>
            <Text value={token.text} />
          </pre>
          <CopyButton text={token.text} label="Copy code" />
        </div>
      );
    case 'blockquote':
      return <blockquote>{children()}</blockquote>;
    case 'list':
      return list(token as Tokens.List, depth);
    case 'table':
      return table(token as Tokens.Table, depth);
    case 'hr':
      return <hr />;
    case 'br':
      return <br />;
    case 'strong':
      return <strong>{children()}</strong>;
    case 'em':
      return <em>{children()}</em>;
    case 'del':
      return <del>{children()}</del>;
    case 'codespan':
      return (
        <code>
          <Text value={token.text} />
        </code>
      );
    case 'link':
      return <SafeLink href={token.href}>{children()}</SafeLink>;
    case 'image':
      return <Picture source={token.href} text={token.text} />;
    case 'escape':
    case 'text':
      return token.tokens === undefined ? <Text value={token.text} /> : children();
    default:
      return <Text value={token.raw} />;
  }
}

function list(token: Tokens.List, depth: number): JSX.Element {
  const items = token.items.map((item) => (
    <li dir="auto">
      {item.task && <span>{item.checked === true ? '☑ ' : '☐ '}</span>}
      {elements(item.tokens, depth + 1)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table({ header, rows }: Tokens.Table, depth: number): JSX.Element {
  const cell = ({ tokens, align }: Tokens.TableCell, Tag: 'th' | 'td'): JSX.Element => (
    <Tag dir="auto" class={align === null ? '' : `align-${align}`}>
      {elements(tokens, depth + 1)}
    </Tag>
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: The keyboard must reach an element that scrolls.
    <div class="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{header.map((one) => cell(one, 'th'))}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>{row.map((one) => cell(one, 'td'))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SafeLink({ href, children }: { href: string; children: ComponentChildren }): JSX.Element {
  if (!/^https?:\/\//i.test(href)) return <span>{children}</span>;
  return (
    <a href={href} title={visible(href)} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** Renders a picture as a link, because loading it would reveal to its server that the answer is being read. */
export function Picture({ source, text }: { source: string; text: string }): JSX.Element {
  return (
    <SafeLink href={source}>
      [picture: <Text value={text === '' ? source : text} />]
    </SafeLink>
  );
}

/** Button that copies a text to the clipboard. */
export function CopyButton({ text, label }: { text: string; label: string }): JSX.Element {
  const status = useSignal<'idle' | 'complete' | 'failed'>('idle');
  const copy = async (): Promise<void> => {
    // `navigator.clipboard` is not available on pages loaded over plain HTTP.
    const isCopied = await (navigator.clipboard?.writeText(text) ?? Promise.reject(new Error())).then(
      () => true,
      () => false,
    );
    status.value = isCopied ? 'complete' : 'failed';
    announce(isCopied ? 'Copied.' : 'The browser does not allow copying.');
    setTimeout(() => {
      status.value = 'idle';
    }, DONE_MS);
  };
  return (
    <IconButton
      icon={status.value === 'idle' ? 'copy' : status.value}
      label={label}
      class="copy"
      onClick={() => void copy()}
    />
  );
}
