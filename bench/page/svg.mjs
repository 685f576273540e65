/** A picture as text. Words take the colour that the reader's page has them in, light or dark. */
const STYLE =
  'text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:14px}.faint{fill:#59636e}' +
  '.grid{stroke:#8b949e;stroke-opacity:.35}' +
  '@media(prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9198a1}}';

export function picture({ width, height, title }, marks) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    words(0, 16, title, { class: 'title' }),
    ...marks,
    '</svg>\n',
  ].join('\n');
}

export function words(x, y, text, attributes = {}) {
  return `<text ${attributesOf({ x, y, ...attributes })}>${escaped(text)}</text>`;
}

export function line(x1, y1, x2, y2, attributes = {}) {
  return `<line ${attributesOf({ x1, y1, x2, y2, ...attributes })}/>`;
}

export function dot(cx, cy, colour) {
  return `<circle ${attributesOf({ cx, cy, r: 4.5, fill: colour })}/>`;
}

export function path(points, colour) {
  const d = points.map(([x, y], at) => `${at === 0 ? 'M' : 'L'}${round(x)} ${round(y)}`).join('');
  return `<path ${attributesOf({ d, fill: 'none', stroke: colour, 'stroke-width': 2 })}/>`;
}

/** Names of series with their dots, in lines that fit the width; gives back the marks and the height. */
export function legend(entries, { x, y, width }) {
  const marks = [];
  let atX = x;
  let atY = y;
  for (const { label, colour } of entries) {
    const entryWidth = 24 + label.length * 6.6;
    if (atX > x && atX + entryWidth > x + width) {
      atX = x;
      atY += 20;
    }
    marks.push(dot(atX + 6, atY - 4, colour), words(atX + 16, atY, label));
    atX += entryWidth + 6;
  }
  return { marks, height: atY - y + 20 };
}

function attributesOf(attributes) {
  return Object.entries(attributes)
    .map(([name, value]) => `${name}="${typeof value === 'number' ? round(value) : value}"`)
    .join(' ');
}

function round(number) {
  return Math.round(number * 10) / 10;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
