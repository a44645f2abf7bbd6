// Which tool of an MCP server a function is: written, or chosen from what the server says that it has.
import { call } from '../api.js';
import { Field, Select } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { textOf } from '../values.js';
import { words } from '../words.js';

const text = words.functions;
const NAME = 'mcp.tool';
const SHOWN = 80;

const said = ({ name, description }) => {
  const about = (description ?? '').trim().split('\n')[0];
  if (!about) return name;
  return `${name}: ${about.length > SHOWN ? `${about.slice(0, SHOWN)}…` : about}`;
};

/** `headersOf(values)`: what the form says of headers. Where stored ones are not known, `isKnown` is false and the tool is written. */
export function McpTool({ tool, isKnown, headersOf }) {
  const place = useRef(null);
  /** `chosen`: what was written or chosen when the field was drawn. */
  const [{ tools, note, chosen }, setListed] = useState({ tools: null, note: '', chosen: tool });
  const valuesNow = () => new FormData(place.current.closest('form'));
  const show = (listed, note) => setListed({ tools: listed, note, chosen: textOf(valuesNow(), NAME) });
  useEffect(() => {
    const form = place.current.closest('form');
    // Another server has other tools.
    const forget = ({ target }) => { if (target.name === 'url') show(null, ''); };
    form.addEventListener('input', forget);
    return () => form.removeEventListener('input', forget);
  }, []);
  const list = async () => {
    const values = valuesNow();
    const url = textOf(values, 'url');
    // An answer that comes when somebody has gone on is of another server, or of no form.
    const isMeant = () => place.current && textOf(valuesNow(), 'url') === url;
    show(null, words.working);
    try {
      const listed = await call('POST', '/functions/mcp_tools', { url, headers: headersOf(values) });
      const note = listed.has_more ? text.moreTools(listed.tools.length) : text.tools(listed.tools.length);
      if (isMeant()) show(listed.tools.length ? listed.tools : null, note);
    } catch (error) {
      if (isMeant()) show(null, error.message);
    }
  };
  const isListed = tools?.some(({ name }) => name === chosen);
  const options = tools && [...(isListed ? [] : [['', text.chooseTool]]), ...tools.map((one) => [one.name, said(one)])];
  const about = { name: NAME, label: text.label[NAME], hint: text.hint[NAME] };
  return html`
    <div class="stack tight" ref=${place}>
      ${tools
        ? html`<${Select} key="listed" ...${about} options=${options} defaultValue=${isListed ? chosen : ''} required />`
        : html`<${Field} key="written" ...${about} defaultValue=${chosen} required maxlength="128" spellcheck=${false} autocomplete="off" />`}
      ${isKnown && html`
        <p class="hint" role="status">${note}</p>
        <div class="actions left"><button type="button" class="button quiet small" onClick=${list}>${text.listTools}</button></div>`}
    </div>`;
}
