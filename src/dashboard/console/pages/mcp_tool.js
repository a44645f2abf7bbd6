// Which tool of an MCP server a function is: written, or chosen from what the server says that it has.
import { call } from '../api.js';
import { Field, Select } from '../form.js';
import { html, useRef, useState } from '../html.js';
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
  const [{ tools, note }, setListed] = useState({ tools: null, note: '' });
  const list = async () => {
    const values = new FormData(place.current.closest('form'));
    setListed({ tools: null, note: words.working });
    try {
      const listed = await call('POST', '/functions/mcp_tools', { url: textOf(values, 'url'), headers: headersOf(values) });
      const note = listed.has_more ? text.moreTools(listed.tools.length) : text.tools(listed.tools.length);
      setListed({ tools: listed.tools.length ? listed.tools : null, note });
    } catch (error) {
      setListed({ tools: null, note: error.message });
    }
  };
  const about = { name: NAME, label: text.label[NAME], hint: text.hint[NAME] };
  return html`
    <div class="stack tight" ref=${place}>
      ${tools
        ? html`<${Select} key="listed" ...${about} options=${tools.map((one) => [one.name, said(one)])} />`
        : html`<${Field} key="written" ...${about} defaultValue=${tool} required maxlength="128" spellcheck=${false} autocomplete="off" />`}
      ${isKnown && html`
        <p class="hint" role="status">${note}</p>
        <div class="actions left"><button type="button" class="button quiet small" onClick=${list}>${text.listTools}</button></div>`}
    </div>`;
}
